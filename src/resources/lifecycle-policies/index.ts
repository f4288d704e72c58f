import type { Notifications } from '../notifications/service.ts';
import type { DutyOptions, Resource } from '../resource.ts';
import { lifecyclePolicyOperations } from './routes.ts';
import { createLifecyclePolicyDuties } from './runs/reconcile.ts';
import type { LifecyclePolicyRunDeps } from './runs/reconcile.ts';
import type { LifecyclePolicyRuns } from './runs/service.ts';
import type { LifecyclePolicySchedules } from './schedules/service.ts';
import type { LifecyclePolicies } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

type DutyServices = Omit<LifecyclePolicyRunDeps, 'notify'> & DutyOptions & { notifications: Notifications };

export const lifecyclePolicies = {
  operations: (services: {
    lifecyclePolicies: LifecyclePolicies;
    lifecyclePolicyRuns: LifecyclePolicyRuns;
    lifecyclePolicySchedules: LifecyclePolicySchedules;
  }) =>
    lifecyclePolicyOperations(
      services.lifecyclePolicies,
      services.lifecyclePolicyRuns,
      services.lifecyclePolicySchedules,
    ),
  usageOfRows,
  usesOfProject,
  duties: ({ notifications, ...services }: DutyServices) =>
    createLifecyclePolicyDuties({ ...services, notify: notifications.issue }),
} satisfies Resource;
