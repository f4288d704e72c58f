import type { Resource } from '../resource.ts';
import { thresholdRoutes } from './routes.ts';
import type { Thresholds } from './service.ts';

export const thresholds = {
  operations: (services: { thresholds: Thresholds }) => thresholdRoutes(services.thresholds),
} satisfies Resource;
