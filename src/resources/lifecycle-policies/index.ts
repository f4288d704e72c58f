import { projectReader } from '../../authz/access.ts';
import type { Notifications } from '../notifications/service.ts';
import type { DutyOptions, Resource } from '../resource.ts';
import { lifecyclePolicyOperations } from './routes.ts';
import { createLifecyclePolicyDuties, type LifecyclePolicyRunDeps } from './runs/reconcile.ts';
import { usageOfRows, usesOfProject } from './store.ts';

type DutyServices = Omit<LifecyclePolicyRunDeps, 'notify'> & DutyOptions & { notifications: Notifications };

const policy = { kind: 'lifecycle_policy', access: projectReader };
const ownerBy = (id: string) => ({ table: 'lifecycle_policies', id });

export const lifecyclePolicies = {
  operations: lifecyclePolicyOperations,
  usageOfRows,
  usesOfProject,
  duties: ({ notifications, ...services }: DutyServices) =>
    createLifecyclePolicyDuties({ ...services, notify: notifications.issue }),
  events: [
    { ...policy, table: 'lifecycle_policies', columns: ['name', 'action', 'status'] },
    { ...policy, table: 'lifecycle_policy_schedules', owner: ownerBy('c.policy_id') },
    { ...policy, table: 'lifecycle_policy_volumes', owner: ownerBy('c.policy_id') },
    { ...policy, table: 'lifecycle_policy_missed_runs', owner: ownerBy('c.policy_id') },
    { ...policy, table: 'lifecycle_policy_runs', owner: ownerBy('c.policy_id') },
    {
      ...policy,
      table: 'lifecycle_policy_run_volumes',
      owner: ownerBy('(select run.policy_id from public.lifecycle_policy_runs run where run.id = c.run_id)'),
    },
  ],
} satisfies Resource;
