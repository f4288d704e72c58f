import { projectReader } from '../../authz/access.ts';
import type { LoadBalancerDriver } from '../../drivers/load-balancer.ts';
import type { Clock } from '../../platform/clock.ts';
import { driverBacked, type DutyOptions, type Resource } from '../resource.ts';
import type { ReconcilerDeps } from '../reconcile-kit.ts';
import type { Secrets } from '../secrets/service.ts';
import { l7PolicyOperations } from './l7-policies/routes.ts';
import type { L7Policies } from './l7-policies/service.ts';
import { listenerOperations } from './listeners/routes.ts';
import type { Listeners } from './listeners/service.ts';
import { memberOperations } from './members/routes.ts';
import { poolOperations } from './pools/routes.ts';
import type { Pools } from './pools/service.ts';
import { createLoadBalancerReconciler } from './reconcile.ts';
import { createLoadBalancerDuties } from './recorders.ts';
import { loadBalancerOperations } from './routes.ts';
import type { LoadBalancers } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

type Services = ReconcilerDeps & { secrets: Pick<Secrets, 'pemOf'> };
type DutyServices = ReconcilerDeps & DutyOptions & { clock: Clock };

/** Locked, and so changed by tasks, together with the load balancer. */
const part = { access: projectReader, taskResource: 'r.load_balancer_id' };

export const loadBalancers = {
  operations: (services: {
    loadBalancers: LoadBalancers;
    listeners: Listeners;
    pools: Pools;
    l7Policies: L7Policies;
  }) => [
    ...loadBalancerOperations(services.loadBalancers),
    ...listenerOperations(services.listeners),
    ...poolOperations(services.pools),
    ...memberOperations(services.pools),
    ...l7PolicyOperations(services.l7Policies),
  ],
  usageOfRows,
  usesOfProject,
  ...driverBacked({
    driver: (drivers: { loadBalancer: LoadBalancerDriver }) => drivers.loadBalancer,
    faults: 'load_balancer',
    reconciler: ({ secrets, ...services }: Services, driver) =>
      createLoadBalancerReconciler({ ...services, driver, pemOf: secrets.pemOf }),
    duties: (services: DutyServices, driver) => createLoadBalancerDuties({ ...services, driver }),
  }),
  events: [
    { table: 'load_balancers', kind: 'load_balancer', access: projectReader },
    { ...part, table: 'lb_listeners', kind: 'lb_listener' },
    { ...part, table: 'lb_pools', kind: 'lb_pool' },
    { ...part, table: 'lb_members', kind: 'lb_pool', owner: { table: 'lb_pools', id: 'c.pool_id' } },
    { ...part, table: 'lb_l7_policies', kind: 'l7_policy' },
    { ...part, table: 'lb_l7_rules', kind: 'l7_rule' },
  ],
} satisfies Resource;
