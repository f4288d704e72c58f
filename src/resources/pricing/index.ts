import type { Resource } from '../resource.ts';
import { pricingOperations } from './routes.ts';
import type { Pricing } from './service.ts';

export const pricing = {
  operations: (services: { pricing: Pricing }) => pricingOperations(services.pricing),
  events: [],
} satisfies Resource;
