import type { Resource } from '../resource.ts';
import { thresholdOperations } from './routes.ts';
import type { Thresholds } from './service.ts';

export const thresholds = {
  operations: (services: { thresholds: Thresholds }) => thresholdOperations(services.thresholds),
} satisfies Resource;
