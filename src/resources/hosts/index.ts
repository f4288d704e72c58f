import type { Resource } from '../resource.ts';
import { hostOperations } from './routes.ts';

export const hosts = {
  operations: hostOperations,
  // Agents renew their rows each second; the console polls.
  events: [],
} satisfies Resource;
