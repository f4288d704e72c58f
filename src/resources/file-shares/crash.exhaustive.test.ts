/** Fails every statement and driver call of the file share reconciler once; the desired state must still be reached. */
import { describe, expect, it } from 'vitest';
import { type CrashCase, crashEverywhere, drift, reconcileOnce, truthOfShares } from '../../../test/crash-harness.ts';
import { createTestHost, type DriverCall, terminal, type Trouble } from '../../../test/drivers.ts';
import { useCloudyard } from '../../../test/harness.ts';
import type { FileShareDriver } from '../../drivers/file-share.ts';
import { createFileShareReconciler } from './reconcile.ts';

const cloud = useCloudyard({ driver: null });
const host = createTestHost();
const shares = '/cloud/v1/file_shares/1/1';

const reconciler: CrashCase<FileShareDriver>['reconciler'] = (db, driver) =>
  createFileShareReconciler({ ...cloud.services, db, driver });

const reconcile = (id: string) => reconcileOnce(cloud.db, cloud.services.tasks, reconciler(cloud.db, host), id);

async function requestShare(): Promise<string> {
  const access = [
    { access_mode: 'ro', ip_address: '10.0.0.0/24' },
    { access_mode: 'rw', ip_address: '10.0.1.1' },
  ];
  const network_id = (await cloud.get('/cloud/v1/networks/1/1')).body.results[0].id as string;
  const body = { name: 'a share', protocol: 'NFS', size: 2, network: { network_id }, access };
  const { tasks } = (await cloud.post(shares, body)).body;
  return (await cloud.get(`/cloud/v1/tasks/${tasks[0]}`)).body.created_resources.file_shares[0];
}

/** An available share on which `change` was then called. */
const changed = (change: (path: string) => Promise<unknown>) => async () => {
  const id = await requestShare();
  await reconcile(id);
  await change(`${shares}/${id}`);
  return id;
};

const ruleOf = async (path: string, i: number) => (await cloud.get(`${path}/access_rule`)).body.results[i].id as string;

/** The complete visible state of a share: its row, its rules, its tasks, the host, the counters. */
async function world(id: string) {
  const { status, body } = await cloud.get(`${shares}/${id}`);
  const rules = status === 200 ? (await cloud.get(`${shares}/${id}/access_rule`)).body.results : [];
  const { rows: tasks } = await cloud.db.$client.query<{ task: string }>(
    `select task_type || ' ' || state as task from tasks where resource_id = $1 order by created_on, generation`,
    [id],
  );
  return {
    share: status === 200 ? { status: body.status, size: body.size, task_id: body.task_id } : status,
    rules: rules.map((rule: Record<string, string>) => `${rule['access_level']} ${rule['access_to']} ${rule['state']}`),
    tasks: tasks.map(({ task }) => task),
    host: host.shares.get(id),
    drift: await drift(cloud.db, truthOfShares),
    counted: await rowCountsMatch(),
    pending: (await reconciler(cloud.db, host).findPending(cloud.db, [1])).some((row) => row.id === id),
  };
}

async function rowCountsMatch(): Promise<boolean> {
  const { rows } = await cloud.db.$client.query<{ right: boolean }>(
    `select (select count from row_counts where resource = 'file_share' and project_id = 1 and region_id = 1)
            = (select count(*) from file_shares where project_id = 1 and region_id = 1) as right`,
  );
  return rows[0]!.right;
}

const initialRules = [
  { network: '10.0.0.0/24', mode: 'ro' as const },
  { network: '10.0.1.1/32', mode: 'rw' as const },
];
const initialShown = ['ro 10.0.0.0/24 active', 'rw 10.0.1.1 active'];
const consistent = { drift: [], counted: true, pending: false };
const available = (size: number) => ({ status: 'available', size, task_id: null });
const onHost = (id: string, changes: object = {}) => ({
  id,
  sizeGib: 2,
  settledGib: null,
  rootSquash: false,
  access: initialRules,
  ...changes,
});

interface Scenario {
  arrange(): Promise<string>;
  /** The expected final result of `world`. */
  end(id: string): object;
  trouble?: (call: DriverCall) => Trouble;
  /** A request that a client sends during the reconcile. */
  meddle?: (path: string) => Promise<unknown>;
}

const scenarios: Record<string, Scenario> = {
  'creating a share': {
    arrange: requestShare,
    end: (id) => ({
      ...consistent,
      share: available(2),
      rules: initialShown,
      tasks: ['create_sfs FINISHED'],
      host: onHost(id),
    }),
  },
  'extending a share': {
    arrange: changed((path) => cloud.post(`${path}/extend`, { size: 5 })),
    end: (id) => ({
      ...consistent,
      share: available(5),
      rules: initialShown,
      tasks: ['create_sfs FINISHED', 'extend_sfs FINISHED'],
      host: onHost(id, { sizeGib: 5 }),
    }),
  },
  'changing settings': {
    arrange: changed((path) =>
      cloud.patch(path.replace('/v1/', '/v3/'), { share_settings: { root_squash: true }, tags: { a: '1' } }),
    ),
    end: (id) => ({
      ...consistent,
      share: available(2),
      rules: initialShown,
      tasks: ['create_sfs FINISHED', 'update_sfs FINISHED'],
      host: onHost(id, { rootSquash: true }),
    }),
  },
  'adding and removing rules': {
    arrange: changed(async (path) => {
      await cloud.delete(`${path}/access_rule/${await ruleOf(path, 0)}`);
      await cloud.post(`${path}/access_rule`, { access_mode: 'ro', ip_address: '1.2.3.4' });
      await cloud.post(`${path}/access_rule`, { access_mode: 'rw', ip_address: 'fd00::/64' });
    }),
    end: (id) => ({
      ...consistent,
      share: available(2),
      rules: ['rw 10.0.1.1 active', 'ro 1.2.3.4 active', 'rw fd00::/64 active'],
      tasks: ['create_sfs FINISHED'],
      host: onHost(id, { access: [initialRules[1], added, { network: 'fd00::/64', mode: 'rw' }] }),
    }),
  },
  'deleting a share': {
    arrange: changed((path) => cloud.delete(path)),
    end: () => ({
      ...consistent,
      share: 404,
      rules: [],
      tasks: ['create_sfs FINISHED', 'delete_sfs FINISHED'],
      host: undefined,
    }),
  },
  'adding a rule, with a permanent driver error': {
    arrange: changed((path) => cloud.post(`${path}/access_rule`, { access_mode: 'ro', ip_address: '1.2.3.4' })),
    trouble: () => ({ error: terminal(), done: false }),
    end: (id) => ({
      ...consistent,
      share: available(2),
      rules: [...initialShown, 'ro 1.2.3.4 error'],
      tasks: ['create_sfs FINISHED'],
      host: onHost(id),
    }),
  },
  'creating a share, with a permanent driver error': {
    arrange: requestShare,
    trouble: () => ({ error: terminal(), done: false }),
    end: () => ({
      ...consistent,
      share: { status: 'error', size: 2, task_id: null },
      rules: ['ro 10.0.0.0/24 error', 'rw 10.0.1.1 error'],
      tasks: ['create_sfs ERROR'],
      host: undefined,
    }),
  },
  'extending a share, with a permanent driver error': {
    arrange: changed((path) => cloud.post(`${path}/extend`, { size: 5 })),
    trouble: () => ({ error: terminal(), done: false }),
    end: (id) => ({
      ...consistent,
      share: { status: 'extending_error', size: 2, task_id: null },
      rules: initialShown,
      tasks: ['create_sfs FINISHED', 'extend_sfs ERROR'],
      host: onHost(id),
    }),
  },
  'deleting a share, with a permanent driver error': {
    arrange: changed((path) => cloud.delete(path)),
    trouble: ({ method }) => (method === 'remove' ? { error: terminal(), done: false } : null),
    end: (id) => ({
      ...consistent,
      share: { status: 'error_deleting', size: 2, task_id: null },
      rules: initialShown,
      tasks: ['create_sfs FINISHED', 'delete_sfs ERROR'],
      host: onHost(id),
    }),
  },
};

const addRule = changed((path) => cloud.post(`${path}/access_rule`, { access_mode: 'ro', ip_address: '1.2.3.4' }));
const added = { network: '1.2.3.4/32', mode: 'ro' as const };
const shownWithAdded = [...initialShown, 'ro 1.2.3.4 active'];

/** A share is not locked while a rule changes, so other requests may arrive at any time. */
const concurrentRequests: Record<string, Scenario> = {
  'deleting a share while a rule changes': {
    arrange: addRule,
    meddle: (path) => cloud.delete(path),
    end: scenarios['deleting a share']!.end,
  },
  'deleting a share while a rule fails permanently': {
    arrange: addRule,
    trouble: ({ method }) => (method === 'apply' ? { error: terminal(), done: false } : null),
    meddle: (path) => cloud.delete(path),
    end: scenarios['deleting a share']!.end,
  },
  'extending a share while a rule changes': {
    arrange: addRule,
    meddle: (path) => cloud.post(`${path}/extend`, { size: 5 }),
    end: (id) => ({
      ...consistent,
      share: available(5),
      rules: shownWithAdded,
      tasks: ['create_sfs FINISHED', 'extend_sfs FINISHED'],
      host: onHost(id, { sizeGib: 5, access: [...initialRules, added] }),
    }),
  },
  'extending a share while a rule fails permanently': {
    arrange: addRule,
    trouble: ({ desired }) => (desired?.sizeGib === 2 ? { error: terminal(), done: false } : null),
    meddle: (path) => cloud.post(`${path}/extend`, { size: 5 }),
    end: (id) => ({
      ...consistent,
      share: available(5),
      rules: shownWithAdded,
      tasks: ['create_sfs FINISHED', 'extend_sfs FINISHED'],
      host: onHost(id, { sizeGib: 5, access: [...initialRules, added] }),
    }),
  },
  'removing a rule while another is added': {
    arrange: addRule,
    meddle: async (path) => cloud.delete(`${path}/access_rule/${await ruleOf(path, 0)}`),
    end: (id) => ({
      ...consistent,
      share: available(2),
      rules: shownWithAdded.slice(1),
      tasks: ['create_sfs FINISHED'],
      host: onHost(id, { access: [initialRules[1], added] }),
    }),
  },
  'creating a rule with another mode while the old one is being removed': {
    arrange: changed(async (path) => cloud.delete(`${path}/access_rule/${await ruleOf(path, 0)}`)),
    meddle: (path) => cloud.post(`${path}/access_rule`, { access_mode: 'rw', ip_address: '10.0.0.0/24' }),
    end: (id) => ({
      ...consistent,
      share: available(2),
      rules: [initialShown[1], 'rw 10.0.0.0/24 active'],
      tasks: ['create_sfs FINISHED'],
      host: onHost(id, { access: [initialRules[1], { network: '10.0.0.0/24', mode: 'rw' }] }),
    }),
  },
  'removing a rule that is being added': {
    arrange: addRule,
    meddle: async (path) => cloud.delete(`${path}/access_rule/${await ruleOf(path, 2)}`),
    end: (id) => ({
      ...consistent,
      share: available(2),
      rules: initialShown,
      tasks: ['create_sfs FINISHED'],
      host: onHost(id),
    }),
  },
};

async function everywhere(_name: string, given: Scenario): Promise<void> {
  const figures = await crashEverywhere({
    db: cloud.db,
    tasks: cloud.services.tasks,
    driver: host as FileShareDriver,
    reconciler,
    async arrange() {
      host.trouble();
      const id = await given.arrange();
      host.trouble(given.trouble);
      return id;
    },
    async check(id) {
      expect(await world(id)).toEqual(given.end(id));
    },
    ...(given.meddle && { meddle: (id: string) => given.meddle!(`${shares}/${id}`) }),
  });
  // Every scenario has at least four steps (load, show the rule, apply, record), with a failure before and after each.
  expect(figures.injected).toBeGreaterThanOrEqual(2 * 4);
}

describe('if the file share reconciler fails or dies at any step, any number of times', () => {
  it.each(Object.entries(scenarios))(
    '%s reaches the expected state, and another reconcile changes nothing',
    everywhere,
    120_000,
  );
});

describe('if a client changes a share while it is being reconciled', () => {
  it.each(Object.entries(concurrentRequests))('%s reaches the expected state', everywhere, 120_000);
});

describe('a change of settings that the host rejected', () => {
  const settings = { share_settings: { root_squash: true } };
  const patch = async (id: string) => (await cloud.patch(`/cloud/v3/file_shares/1/1/${id}`, settings)).body.tasks;
  const show = async (id: string) => (await cloud.get(`${shares}/${id}`)).body;

  it('is repeated by the same update', async () => {
    host.trouble();
    const id = await requestShare();
    await reconcile(id);
    host.trouble(() => ({ error: terminal(), done: false }));
    await patch(id);
    await reconcile(id);
    host.trouble();
    expect(await show(id)).toMatchObject({ status: 'error', ...settings });
    const tasks = await patch(id);
    expect(tasks).toHaveLength(1);
    await reconcile(id);
    expect((await cloud.get(`/cloud/v1/tasks/${tasks[0]}`)).body.state).toBe('FINISHED');
    expect(await show(id)).toMatchObject({ status: 'available', ...settings });
    expect(host.shares.get(id)).toMatchObject({ rootSquash: true });
    expect(await patch(id)).toEqual([]);
  });

  it('does not change a share that was never created', async () => {
    host.trouble(() => ({ error: terminal(), done: false }));
    const id = await requestShare();
    await reconcile(id);
    host.trouble();
    const same = { share_settings: { root_squash: false } };
    await cloud.patch(`/cloud/v3/file_shares/1/1/${id}`, same);
    expect((await cloud.patch(`/cloud/v3/file_shares/1/1/${id}`, same)).body).toEqual({ tasks: [] });
  });
});
