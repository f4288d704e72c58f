import type { Resource } from '../resource.ts';
import { pricingOperations } from './routes.ts';

export const pricing = {
  operations: pricingOperations,
  events: [],
} satisfies Resource;
