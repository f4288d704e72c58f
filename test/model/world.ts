/** The processes that a story runs on: an API server, a worker with durable simulated hosts, and PostgreSQL. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpAnswer } from '../http-client.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import type { Disturbance, Fields } from './model.ts';
import { limitFields } from './curl.ts';
import { kinds } from './resources/list.ts';

export interface Tenant {
  clientId: number;
  projectId: number;
  token: string;
  networkId: string;
  subnetId: string;
}

/** What a story needs of the processes. */
export type World = Awaited<ReturnType<typeof openWorld>>;

const folders = kinds.flatMap(({ host }) => host?.folder ?? []);

export async function openWorld() {
  const yard = await openYard({
    CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    CLOUDYARD_DEV: '1',
    CLOUDYARD_SWEEP_SECONDS: '1',
    CLOUDYARD_LOG_LEVEL: 'warn',
  });
  const host = join(yard.folder, 'host');
  for (const folder of folders) mkdirSync(join(host, folder), { recursive: true });
  const start = (file: string, ...args: string[]) =>
    supervise(() => yard.startFile(join(import.meta.dirname, file), args, { TEST_HOST: host }));
  const server = await start('server-process.ts', 'serve');
  const worker = await start('worker-process.ts', 'worker', '--region', '1');
  const processes = { server, worker };
  const crashFile = (name: keyof typeof processes) => join(host, `crash-${name}`);

  return {
    yard,
    newTenant: (limits: Record<string, number>) => newTenant(yard, limits),

    /** Disturbs once, and resolves when the process was ended or need not end. */
    async disturb(disturbance: Disturbance, stepsEnded: Promise<unknown>): Promise<void> {
      if (disturbance.kind === 'crash') {
        const moment = disturbance.process === 'worker' ? disturbance.moment : '';
        writeFileSync(crashFile(disturbance.process), moment);
        await stepsEnded;
        return;
      }
      await sleep(disturbance.delayMs);
      if (disturbance.process !== 'postgres') return processes[disturbance.process].end(disturbance.kind === 'kill');
      const { postgres } = yard.pids();
      if (postgres) process.kill(postgres, 'SIGKILL');
    },

    /** Waits until the disturbed processes run again. */
    async recovered(): Promise<void> {
      for (const name of ['server', 'worker'] as const) rmSync(crashFile(name), { force: true });
      await Promise.all([server.ready(), worker.ready()]);
      await until(async () => (await yard.get('/readyz').catch(() => null))?.status === 200, 60, 'readiness');
    },

    /** The desired state on the host by id, of each folder. */
    host: (): Record<string, Map<string, Fields>> =>
      Object.fromEntries(folders.map((folder) => [folder, readFolder(join(host, folder))])),

    close(): void {
      server.stop();
      worker.stop();
      yard.cleanUp();
    },
  };
}

function readFolder(folder: string): Map<string, Fields> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return new Map(names.map((name) => [name.slice(0, -5), JSON.parse(readFileSync(join(folder, name), 'utf8'))]));
}

/** Starts a process again whenever it ends, also when a start fails. */
export async function supervise(start: () => Promise<Running>) {
  let running = await start();
  let stopped = false;
  /** Null: the process runs. */
  let starting: Promise<void> | null = null;
  const startAgain = async (): Promise<void> => {
    while (!stopped) {
      const next = await start().catch(() => null);
      if (next) {
        running = next;
        starting = null;
        watch();
        return;
      }
      await sleep(100);
    }
  };
  const watch = () => {
    void running.ended.then(() => {
      if (!stopped) starting = startAgain();
    });
  };
  watch();
  const ready = async (): Promise<void> => {
    // The end of a process is noticed a moment later.
    while (starting || !existsSync(`/proc/${running.pid}`)) await Promise.race([starting, sleep(20)]);
  };
  return {
    pid: () => running.pid,
    ready,
    async end(abruptly: boolean): Promise<void> {
      await ready();
      await (abruptly ? running.kill() : running.stop());
    },
    stop(): void {
      stopped = true;
    },
  };
}

let tenants = 0;

export async function newTenant(yard: Yard, limits: Record<string, number>): Promise<Tenant> {
  tenants += 1;
  const { id: clientId } = expectOk(await yard.post('/cloudyard/v1/clients', { name: `client ${tenants}` }));
  const given = { name: 'model', role: 'admin', client_id: clientId };
  const { token } = expectOk(await yard.post('/cloudyard/v1/tokens', given));
  const options = { token };
  const projectId = expectOk(await yard.get('/cloud/v1/projects', options)).results[0].id;
  const network = expectOk(await yard.get(`/cloud/v1/networks/${projectId}/1`, options)).results[0];
  if (Object.keys(limits).length > 0) {
    const body = { region_id: 1, ...limitFields(limits) };
    expectOk(await yard.patch(`/cloudyard/v1/clients/${clientId}/quotas`, body));
  }
  return { clientId, projectId, token, networkId: network.id, subnetId: network.subnets[0] };
}

export function expectOk({ status, body }: HttpAnswer): any {
  if (status < 200 || status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
}
