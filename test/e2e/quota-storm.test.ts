/**
 * Random concurrent operations of many clients with small limits, on processes that are killed repeatedly. Invariant:
 * counters always match the rows, and no limit is exceeded. TEST_STORM_OPERATIONS sets the number of operations.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { configurationFiles, readConfiguration } from '../../src/main/configuration.ts';
import { createServices, type Services } from '../../src/main/services.ts';
import { checkoutPlaces, root } from '../../src/platform/program-files.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { connect, transaction } from '../../src/platform/db.ts';
import { isUnavailable } from '../../src/platform/db-errors.ts';
import { createKeyring } from '../../src/platform/encryption.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { readSettings } from '../../src/main/settings.ts';
import type { HttpAnswer } from '../http-client.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';

const operations = Number(process.env['TEST_STORM_OPERATIONS'] ?? 400);
const clients = 64;
const operationsBetweenKills = 50;
const limits = { sfs_count: 3, sfs_size: 7, network_count: 3, subnet_count: 3, secret_count: 2, loadbalancer_count: 1 };

let yard: Yard;
afterEach(() => yard?.cleanUp());

interface Tenant {
  token: string;
  projectId: number;
  networkId: string;
}

async function openServices() {
  const db = connect({ connectionString: yard.databaseUrl(), name: 'storm', poolSize: 3, log: silentLogger });
  const configuration = readConfiguration(
    configurationFiles(readSettings({}, checkoutPlaces(root), false)),
    silentLogger,
  );
  const keyring = createKeyring([{ id: 'storm', key: randomBytes(32) }]);
  const services = await createServices({ db, clock: systemClock, log: silentLogger, configuration, keyring });
  return { services, close: async () => (services.caches.stop(), db.$client.end()) };
}

async function createTenant({ db, clients, tokens, quota }: Services, name: string): Promise<Tenant> {
  const { clientId, projectId } = await clients.create(name);
  const given = { clientId, name, role: 'admin', projectIds: null, expiresAt: null } as const;
  const { text: token } = await tokens.create(given);
  await transaction(db, async (tx) => {
    await quota.setLimits(tx, { clientId, regionId: 1 }, limits);
    await quota.setLimits(tx, { clientId, regionId: 0 }, { project_count: 2 });
  });
  const { rows } = await db.$client.query<{ id: string }>('select id from networks where project_id = $1', [projectId]);
  return { token, projectId, networkId: rows[0]!.id };
}

const pick = <T>(of: readonly T[]): T | undefined => of[Math.floor(Math.random() * of.length)];
const randomSize = (upTo: number) => 1 + Math.floor(Math.random() * upTo);
const opaque = {
  secret_type: 'opaque',
  payload: 'AAAA',
  payload_content_type: 'text/plain',
  payload_content_encoding: 'base64',
};

/** Sends one random request of a client. Returns null if there is no resource for it. */
async function operate({ token, projectId, networkId }: Tenant): Promise<HttpAnswer | null> {
  const options = { token };
  const path = (kind: string) => `/cloud/v1/${kind}/${projectId}/1`;
  const one = async (kind: string) => {
    const { body } = await yard.get(path(kind), options);
    const found = pick((body.results ?? []) as { id: string; is_default?: boolean; default?: boolean }[]);
    return found && !found.default && !found.is_default ? `${path(kind)}/${found.id}` : null;
  };
  const remove = async (kind: string) => {
    const url = await one(kind);
    return url === null ? null : yard.delete(url, options);
  };
  const share = { name: 'share', protocol: 'NFS', size: randomSize(4), network: { network_id: networkId } };
  const extend = async () => {
    const url = await one('file_shares');
    return url === null ? null : yard.post(`${url}/extend`, { size: randomSize(6) }, options);
  };
  const removeProject = async () => {
    const { body } = await yard.get('/cloud/v1/projects', options);
    const other = pick((body.results ?? []).filter(({ id }: { id: number }) => id !== projectId) as { id: number }[]);
    return other ? yard.delete(`/cloud/v1/projects/${other.id}`, options) : null;
  };
  const choices: (() => Promise<HttpAnswer | null>)[] = [
    () => yard.post(path('file_shares'), share, options),
    () => yard.post(path('file_shares'), share, options),
    extend,
    () => remove('file_shares'),
    () => yard.post(path('networks'), { name: 'network' }, options),
    () => remove('networks'),
    () => yard.post(path('secrets'), { name: 'secret', ...opaque }, options),
    () => remove('secrets'),
    () => yard.post(path('loadbalancers'), { name: 'balancer' }, options),
    () => remove('loadbalancers'),
    () => yard.post('/cloud/v1/projects', { name: `project ${Math.random()}` }, options),
    removeProject,
  ];
  return pick(choices)!();
}

/** Kills and restarts random processes, one whenever more operations are done, until all are. */
async function killRepeatedly(start: Record<'server' | 'worker', () => Promise<Running>>, done: () => number) {
  const running = { server: await start.server(), worker: await start.worker() };
  const kills = { server: 0, worker: 0, postgres: 0 };
  const loop = async () => {
    for (let next = operationsBetweenKills; next < operations; next = done() + operationsBetweenKills) {
      await until(() => done() >= next, 120, `${next} operations`);
      const victim = pick(['server', 'worker', 'worker', 'postgres'] as const)!;
      kills[victim] += 1;
      if (victim === 'postgres') {
        const { postgres } = yard.pids();
        if (postgres) process.kill(postgres, 'SIGKILL');
      } else {
        await running[victim].kill();
        running[victim] = await start[victim]();
      }
    }
    return kills;
  };
  return loop();
}

it(`${operations} operations of ${clients} clients exceed no limit, and counters always match the rows`, {
  timeout: 300_000 + operations * 400,
}, async () => {
  const settings = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_NOTIFICATION_WINDOW_SECONDS: '1' };
  yard = await openYard(settings);
  const start = { server: () => yard.start(['serve']), worker: () => yard.start(['worker', '--region', '1']) };
  const first = await start.server();
  const { services, close } = await openServices();
  const tenants = await Promise.all(Array.from({ length: clients }, (_, i) => createTenant(services, `client ${i}`)));
  await first.stop();

  let [left, over] = [operations, false];
  const kills = killRepeatedly(start, () => (over ? operations : operations - left));
  const statuses = new Map<number, number>();
  const work = async (tenant: Tenant) => {
    while (left > 0) {
      // A process that dies sends no response. The operation may have been executed, and is not counted.
      const answer = await operate(tenant).catch(() => null);
      if (!answer || answer.status === 503) {
        await sleep(50);
        continue;
      }
      left -= 1;
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      expect(answer.status).not.toBe(500);
    }
  };
  let checks = 0;
  /** Ignores a check that fails because PostgreSQL was killed. */
  const check = () =>
    expectCountersMatchRows(services).then(
      () => (checks += 1),
      (error: unknown) => {
        if (!isUnavailable(error)) throw error;
      },
    );
  const watch = async () => {
    for (; !over; await sleep(100)) await check();
  };
  const watching = watch();
  await Promise.all(tenants.map(work)).finally(() => (over = true));
  await watching;
  const killed = await kills;
  await until(async () => (await unfinished(services).catch(() => 1)) === 0, 120, 'all tasks to end');
  const before = checks;
  await until(async () => (await check(), checks > before), 30, 'a final check');
  console.info(JSON.stringify({ operations, clients, checks, killed, statuses: Object.fromEntries(statuses) }));
  await close();
  expect((await yard.run(['quota', 'audit'])).code).toBe(0);
});

/** Each check is one statement, so that it reads one snapshot. */
async function expectCountersMatchRows({ db, quotaAudit }: Services): Promise<void> {
  expect(await quotaAudit.find()).toEqual([]);
  const { rows } = await db.$client.query('select * from quota_counters where usage > limit_override');
  expect(rows).toEqual([]);
}

async function unfinished({ db }: Services): Promise<number> {
  const { rows } = await db.$client.query<{ n: number }>(
    `select count(*) as n from tasks where state in ('NEW', 'RUNNING')`,
  );
  return rows[0]!.n;
}
