/** Fails every statement and driver call of the load balancer reconciler once; the desired state must still be reached. */
import { describe, expect, it } from 'vitest';
import { type CrashCase, crashEverywhere, drift, reconcileOnce } from '../../../test/crash-harness.ts';
import { terminal, type Trouble } from '../../../test/drivers.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { createTestLoadBalancerHost, type LoadBalancerCall } from '../../../test/load-balancer-host.ts';
import type { LoadBalancerDriver } from '../../drivers/load-balancer.ts';
import { createSimulatedLoadBalancerDriver } from '../../drivers/simulated/load-balancer.ts';
import { silentLogger } from '../../platform/log.ts';
import { createLoadBalancerReconciler } from './reconcile.ts';

const cloud = useCloudyard({
  driver: null,
  configuration: (shipped) => ({
    ...shipped,
    defaultLimits: { ...shipped.defaultLimits, loadbalancer_count: 100_000 },
  }),
});
const host = createTestLoadBalancerHost();
const balancers = '/cloud/v1/loadbalancers/1/1';
const truth = {
  loadbalancer_count: 'select client_id, region_id, count(*) as amount from load_balancers group by 1, 2',
};

const reconciler: CrashCase<LoadBalancerDriver>['reconciler'] = (db, driver) =>
  createLoadBalancerReconciler({ ...cloud.services, db, driver, pemOf: cloud.services.secrets.pemOf });

const reconcile = (id: string) => reconcileOnce(cloud.db, cloud.services.tasks, reconciler(cloud.db, host), id);

const pool = {
  name: 'a pool',
  protocol: 'HTTP',
  lb_algorithm: 'ROUND_ROBIN',
  members: [
    { address: '10.0.0.1', protocol_port: 80 },
    { address: '10.0.0.2', protocol_port: 80 },
  ],
};
const listeners = [
  { name: 'web', protocol: 'HTTP', protocol_port: 80, pools: [pool] },
  { name: 'bare', protocol: 'TCP', protocol_port: 81 },
];

async function requestBalancer(): Promise<string> {
  const { tasks } = (await cloud.post(balancers, { name: 'a balancer', listeners })).body;
  return (await cloud.get(`/cloud/v1/tasks/${tasks[0]}`)).body.created_resources.loadbalancers[0];
}

/** A working load balancer after the requests of `change`. */
const changed = (change: (id: string) => Promise<unknown>) => async () => {
  const id = await requestBalancer();
  await reconcile(id);
  await change(id);
  return id;
};

const partsOf = async (id: string, path: 'lblisteners' | 'lbpools') => {
  const details = path === 'lbpools' ? '&details=true' : '';
  const { body } = await cloud.get(`/cloud/v1/${path}/1/1?load_balancer_id=${id}${details}`);
  return body.results as Record<string, any>[];
};
const idOf = async (id: string, path: 'lblisteners' | 'lbpools') => (await partsOf(id, path))[0]!['id'] as string;

/** The visible state of a load balancer: rows, tasks, host, counters. */
async function world(id: string) {
  const { status, body } = await cloud.get(`${balancers}/${id}`);
  const { rows: tasks } = await cloud.db.$client.query<{ task: string }>(
    `select task_type || ' ' || state as task from tasks where resource_id = $1 order by created_on, generation`,
    [id],
  );
  const found = host.balancers.get(id);
  const shown = (part: Record<string, any>) => `${part['name']} ${part['provisioning_status']}`;
  return {
    loadBalancer:
      status === 200 ? { status: body.provisioning_status, up: body.admin_state_up, task: body.task_id } : status,
    listeners: (await partsOf(id, 'lblisteners')).map(shown),
    pools: (await partsOf(id, 'lbpools')).map((each) => `${shown(each)} ${each['members'].map(endpoint).join(' ')}`),
    l7Policies: await l7PoliciesOf(id),
    tasks: tasks.map(({ task }) => task),
    host: found && {
      enabled: found.enabled,
      ports: found.listeners.map(({ port, defaultPoolId }) => `${port} ${defaultPoolId ? 'served' : 'bare'}`),
      pools: found.pools.map(({ members }) => members.map(({ address, port }) => `${address}:${port}`).join(' ')),
      l7Policies: found.listeners.flatMap(({ l7Policies }) =>
        l7Policies.map(({ action, rules }) => `${action} ${rules.map(({ value }) => value).join(' ')}`),
      ),
    },
    drift: await drift(cloud.db, truth),
    pending: (await reconciler(cloud.db, host).findPending(cloud.db, [1])).some((row) => row.id === id),
  };
}

/** By position, with the status of each and of its rules. */
async function l7PoliciesOf(id: string): Promise<string[]> {
  const { rows } = await cloud.db.$client.query<{ shown: string }>(
    `select p.position || ' ' || p.action || ' ' || p.provisioning_status
       || coalesce((select string_agg(' ' || r.value || ' ' || r.provisioning_status, '' order by r.created_at)
                    from lb_l7_rules r where r.policy_id = p.id), '') as shown
     from lb_l7_policies p where p.load_balancer_id = $1 order by p.position`,
    [id],
  );
  return rows.map(({ shown }) => shown);
}

const endpoint = (member: Record<string, any>) => `${member['address']}:${member['protocol_port']}`;

const both = '10.0.0.1:80 10.0.0.2:80';
const shownAs = (status: string, task: string | null = null) => ({ status, up: true, task });
const working = {
  loadBalancer: shownAs('ACTIVE'),
  listeners: ['web ACTIVE', 'bare ACTIVE'],
  pools: [`a pool ACTIVE ${both}`],
  l7Policies: [] as string[],
  host: { enabled: true, ports: ['80 served', '81 bare'], pools: [both], l7Policies: [] as string[] },
  drift: [],
  pending: false,
};
const gone = { ...working, loadBalancer: 404, listeners: [], pools: [], host: undefined };

interface Scenario {
  arrange(): Promise<string>;
  /** The expected final `world`. */
  end: object;
  trouble?: (call: LoadBalancerCall) => Trouble;
  /** The concurrent request of a client. */
  meddle?: (id: string) => Promise<unknown>;
}

const remove = (id: string) => cloud.delete(`${balancers}/${id}`);
const addMember = async (id: string) =>
  cloud.patch(`/cloud/v2/lbpools/1/1/${await idOf(id, 'lbpools')}`, {
    members: [...pool.members, { address: '10.0.0.3', protocol_port: 80 }],
  });

const policies = '/cloud/v1/l7policies/1/1';
/** A policy with a rule in front of the first listener. Returns its path. */
async function addPolicy(id: string): Promise<string> {
  const body = { action: 'REJECT', listener_id: await idOf(id, 'lblisteners'), position: 1 };
  const { tasks } = (await cloud.post(policies, body)).body;
  const path = `${policies}/${(await cloud.get(`/cloud/v1/tasks/${tasks[0]}`)).body.created_resources.l7polices[0]}`;
  await cloud.post(`${path}/rules`, { type: 'PATH', compare_type: 'STARTS_WITH', value: '/secret' });
  return path;
}

const scenarios: Record<string, Scenario> = {
  'adding an L7 policy and a rule': {
    arrange: changed(addPolicy),
    end: {
      ...working,
      l7Policies: ['1 REJECT ACTIVE /secret ACTIVE'],
      host: { ...working.host, l7Policies: ['REJECT /secret'] },
      tasks: ['create_loadbalancer FINISHED', 'create_l7policy FINISHED', 'create_l7rule FINISHED'],
    },
  },
  'deleting an L7 policy': {
    arrange: changed(async (id) => {
      const first = await addPolicy(id);
      await addPolicy(id);
      await reconcile(id);
      await cloud.delete(first);
    }),
    end: {
      ...working,
      l7Policies: ['1 REJECT ACTIVE /secret ACTIVE'],
      host: { ...working.host, l7Policies: ['REJECT /secret'] },
      tasks: [
        'create_loadbalancer FINISHED',
        ...['create_l7policy FINISHED', 'create_l7rule FINISHED'],
        ...['create_l7policy FINISHED', 'create_l7rule FINISHED', 'delete_l7policy FINISHED'],
      ],
    },
  },
  'creating a load balancer': {
    arrange: requestBalancer,
    end: { ...working, tasks: ['create_loadbalancer FINISHED'] },
  },
  'disabling a load balancer': {
    arrange: changed((id) => cloud.patch(`/cloud/v2/loadbalancers/1/1/${id}`, { admin_state_up: false, name: 'off' })),
    end: {
      ...working,
      loadBalancer: { ...working.loadBalancer, up: false },
      host: { ...working.host, enabled: false },
      tasks: ['create_loadbalancer FINISHED', 'update_loadbalancer FINISHED'],
    },
  },
  'deleting a listener with its pool': {
    arrange: changed(async (id) =>
      cloud.delete(`/cloud/v1/lblisteners/1/1/${await idOf(id, 'lblisteners')}?delete_default_pool=true`),
    ),
    end: {
      ...working,
      listeners: ['bare ACTIVE'],
      pools: [],
      host: { ...working.host, ports: ['81 bare'], pools: [] },
      tasks: ['create_loadbalancer FINISHED', 'delete_lblistener FINISHED'],
    },
  },
  'deleting a load balancer': {
    arrange: changed(remove),
    end: { ...gone, tasks: ['create_loadbalancer FINISHED', 'delete_loadbalancer FINISHED'] },
  },
  'creating a load balancer, with a permanent driver error': {
    arrange: requestBalancer,
    trouble: () => ({ error: terminal(), done: false }),
    end: {
      ...working,
      loadBalancer: shownAs('ERROR'),
      listeners: ['web ERROR', 'bare ERROR'],
      pools: [`a pool ERROR ${both}`],
      host: undefined,
      tasks: ['create_loadbalancer ERROR'],
    },
  },
  'changing a pool, with a permanent driver error': {
    arrange: changed(addMember),
    trouble: () => ({ error: terminal(), done: false }),
    end: {
      ...working,
      loadBalancer: shownAs('ERROR'),
      pools: [`a pool ERROR ${both} 10.0.0.3:80`],
      tasks: ['create_loadbalancer FINISHED', 'patch_lbpool ERROR'],
    },
  },
  'deleting a load balancer, with a permanent driver error': {
    arrange: changed(remove),
    trouble: ({ method }) => (method === 'remove' ? { error: terminal(), done: false } : null),
    end: {
      ...working,
      loadBalancer: shownAs('ERROR'),
      listeners: ['web ERROR', 'bare ERROR'],
      pools: [`a pool ERROR ${both}`],
      tasks: ['create_loadbalancer FINISHED', 'delete_loadbalancer ERROR'],
    },
  },
};

const concurrentRequests: Record<string, Scenario> = {
  'replacing the members while one is being added': {
    arrange: changed(addMember),
    meddle: async (id) =>
      cloud.patch(`/cloud/v2/lbpools/1/1/${await idOf(id, 'lbpools')}`, { members: pool.members.slice(1) }),
    end: {
      ...working,
      pools: ['a pool ACTIVE 10.0.0.2:80'],
      host: { ...working.host, pools: ['10.0.0.2:80'] },
      tasks: ['create_loadbalancer FINISHED', 'patch_lbpool FINISHED', 'patch_lbpool FINISHED'],
    },
  },
  'replacing the members after a permanent driver error': {
    arrange: changed(addMember),
    trouble: ({ desired }) => (desired?.pools[0]?.members.length === 3 ? { error: terminal(), done: false } : null),
    meddle: async (id) =>
      cloud.patch(`/cloud/v2/lbpools/1/1/${await idOf(id, 'lbpools')}`, { members: pool.members.slice(1) }),
    end: {
      ...working,
      pools: ['a pool ACTIVE 10.0.0.2:80'],
      host: { ...working.host, pools: ['10.0.0.2:80'] },
      tasks: [
        'create_loadbalancer FINISHED',
        expect.stringMatching(/^patch_lbpool (FINISHED|ERROR)$/),
        'patch_lbpool FINISHED',
      ],
    },
  },
};

async function everywhere(_name: string, given: Scenario): Promise<void> {
  const figures = await crashEverywhere({
    db: cloud.db,
    tasks: cloud.services.tasks,
    driver: host as LoadBalancerDriver,
    reconciler,
    async arrange() {
      host.trouble();
      const id = await given.arrange();
      host.trouble(given.trouble);
      return id;
    },
    async check(id) {
      expect(await world(id)).toEqual(given.end);
    },
    ...(given.meddle && { meddle: given.meddle }),
  });
  // At least before and after every step.
  expect(figures.injected).toBeGreaterThanOrEqual(2 * 3);
}

describe('if the load balancer reconciler fails or dies at any step, any number of times', () => {
  it.each(Object.entries(scenarios))(
    '%s reaches the expected state, and another reconcile changes nothing',
    everywhere,
    180_000,
  );
});

describe('changes of a pool during its reconcile', () => {
  it.each(Object.entries(concurrentRequests))('%s reaches the expected state', everywhere, 180_000);
});

describe('a rejected change', () => {
  it('is retried by the next change, and a failed deletion can be repeated', async () => {
    host.trouble(() => ({ error: terminal('the port is taken on the host'), done: false }));
    const id = await requestBalancer();
    await reconcile(id);
    expect((await cloud.get(`${balancers}/${id}`)).body.provisioning_status).toBe('ERROR');
    host.trouble();
    await cloud.post(`${balancers}/${id}/failover`, {});
    await reconcile(id);
    expect(await world(id)).toMatchObject(working);
    host.trouble(() => ({ error: terminal(), done: false }));
    await remove(id);
    await reconcile(id);
    host.trouble();
    const refused = await cloud.patch(`/cloud/v2/loadbalancers/1/1/${id}`, { name: 'renamed' });
    expect(refused).toMatchObject({ status: 409, headers: { 'x-should-retry': 'false' } });
    expect(refused.body.message).toContain('delete it again');
    await remove(id);
    await reconcile(id);
    expect(await world(id)).toMatchObject(gone);
  });
});

it('a simulated host that has restarted gets its load balancers again, also if damage cannot be found', async () => {
  const id = await requestBalancer();
  await reconcile(id);
  const findDamaged = () => Promise.reject(new Error('its files cannot be read'));
  const restarted = { ...createSimulatedLoadBalancerDriver(), findDamaged };
  const drift = await reconciler(cloud.db, restarted).findDrift(cloud.db, [1], silentLogger);
  expect(drift.map(({ id: each }) => each)).toContain(id);
});
