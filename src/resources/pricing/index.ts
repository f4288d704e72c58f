import type { Resource } from '../resource.ts';
import { pricingRoutes } from './routes.ts';
import type { Pricing } from './service.ts';

export const pricing = {
  operations: (services: { pricing: Pricing }) => pricingRoutes(services.pricing),
} satisfies Resource;
