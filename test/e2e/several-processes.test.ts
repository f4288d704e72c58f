/** The API in several processes on one port: CLOUDYARD_PROCESSES. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { usableProcessors } from '../../src/platform/processor-affinity.ts';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const processes = 2;
const ratePerMinute = 2000;

let yard: Yard;
let server: Running;

beforeAll(async () => {
  yard = await openYard({
    CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    CLOUDYARD_PROCESSES: String(processes),
    CLOUDYARD_RATE_LIMIT: String(ratePerMinute),
  });
  server = await yard.start(['start']);
});
afterAll(() => yard?.cleanUp());

const pidsOfApi = () => [...new Set(servers().map(({ pid }) => pid as number))];
const servers = () => server.log().filter(({ msg }) => String(msg).startsWith('Server listening'));

const processorsOf = (pid: number) => usableProcessors(readFileSync(`/proc/${pid}/status`, 'utf8'));

/** A client with a connection of its own. */
function openConnection(token = bootstrapToken) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    get: (path: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const sent = httpRequest(yard.url + path, { agent, headers: { authorization: `apikey ${token}` } });
        sent.once('error', reject).once('response', (response: IncomingMessage) => {
          response.resume().once('end', () => resolve(response.statusCode!));
        });
        sent.end();
      }),
    close: () => agent.destroy(),
  };
}

async function newToken(...options: string[]): Promise<string> {
  const { stdout } = await yard.run(['token', 'create', '--role', 'reader', ...options]);
  return /\S+\$\S+/.exec(stdout)![0];
}

/** The value of a metric, summed over its labels. */
async function metric(name: string): Promise<number> {
  const { body } = await yard.get('/metrics', { token: null });
  const lines = String(body)
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('several processes on one port', () => {
  it('serve a client by different processes, and run its tasks once', async () => {
    expect(pidsOfApi()).toHaveLength(processes);
    expect(pidsOfApi()).not.toContain(server.pid);
    const connections = Array.from({ length: 8 }, () => openConnection());
    for (const { get } of connections) expect(await get('/cloud/v1/projects')).toBe(200);
    const network = await yard.get('/cloud/v1/networks/1/1');
    const created = await yard.insist('POST', '/cloud/v1/file_shares/1/1', {
      name: 'by one of them',
      protocol: 'NFS',
      size: 1,
      network: { network_id: network.body.results[0].id },
    });
    expect(await yard.ended(created)).toMatchObject({ state: 'FINISHED' });
    const served = new Set(
      server
        .log()
        .filter(({ url }) => url === '/cloud/v1/projects')
        .map(({ pid }) => pid),
    );
    expect(served.size).toBe(processes);
    for (const { close } of connections) close();
  });

  it('add up their metrics, whichever of them answers', async () => {
    const name = 'cloudyard_http_request_seconds_count{operation="getRegion"';
    const count = async () => {
      const { body } = await yard.get('/metrics', { token: null });
      const line = String(body)
        .split('\n')
        .find((each) => each.startsWith(name));
      return Number(line?.split(' ').at(-1) ?? 0);
    };
    const before = await count();
    const connections = Array.from({ length: 6 }, () => openConnection());
    for (const { get } of connections) expect(await get('/cloud/v1/regions/1')).toBe(200);
    for (const { close } of connections) close();
    expect(await count()).toBe(before + 6);
    // Values that every process reads from the database are not added up.
    expect(await metric('cloudyard_schedule_lateness_seconds')).toBe(0);
  });

  it('refuse a revoked token within a second', async () => {
    const token = await newToken();
    const connections = Array.from({ length: 4 }, () => openConnection(token));
    for (const { get } of connections) expect(await get('/cloud/v1/projects')).toBe(200);
    await yard.run(['token', 'revoke', token.split('$')[0]!]);
    const isRefused = async () =>
      (await Promise.all(connections.map(({ get }) => get('/cloud/v1/projects')))).every((status) => status === 401);
    await until(isRefused, 1, 'the token refused by every process');
    for (const { close } of connections) close();
  });

  it('replace a process that dies, without a failed request on the others', async () => {
    const [dying] = pidsOfApi();
    const connections = Array.from({ length: 8 }, () => openConnection());
    for (const { get } of connections) await get('/healthz');
    const outcomes: (number | string)[][] = connections.map(() => []);
    let isOver = false;
    const loads = connections.map(async ({ get }, i) => {
      while (!isOver) {
        outcomes[i]!.push(await get('/cloud/v1/regions/1').catch((error: NodeJS.ErrnoException) => String(error.code)));
        await sleep(20);
      }
    });
    process.kill(dying!, 'SIGKILL');
    await until(() => servers().length > processes, 30, 'a new process');
    const wanted = outcomes.map(({ length }) => length + 10);
    await until(() => outcomes.every(({ length }, i) => length >= wanted[i]!), 30, 'requests beside the new process');
    isOver = true;
    await Promise.all(loads);
    for (const { close } of connections) close();
    const failures = outcomes.map((of) => of.filter((outcome) => outcome !== 200));
    // The connections of the process that died; the clients reconnect to the other one.
    expect(failures.filter((of) => of.length === 0).length).toBeGreaterThanOrEqual(connections.length / 2);
    expect(failures.flat().filter((outcome) => typeof outcome === 'number')).toEqual([]);
    expect(Math.max(...failures.map((of) => of.length))).toBeLessThanOrEqual(1);
  });

  it('have a processor each if there are as many, also after one was replaced', async () => {
    const running = () => pidsOfApi().slice(-processes);
    const all = usableProcessors();
    const expected = all.length === processes ? all.map((one) => [one]) : running().map(() => all);
    await until(() => JSON.stringify(running().map(processorsOf).sort()) === JSON.stringify(expected), 10, 'bound');
    expect(processorsOf(server.pid)).toEqual(all);
  });

  it('leave the start of the embedded PostgreSQL to the first process, which is bound to no processor', async () => {
    const postgres = () =>
      Number(readFileSync(join(yard.dataDir, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);
    for (let i = 0; i < 3; i++) {
      const before = postgres();
      process.kill(before, 'SIGKILL');
      const restarted = async () => postgres() !== before && (await yard.get('/cloud/v1/projects')).status === 200;
      await until(() => restarted().catch(() => false), 60, 'PostgreSQL again');
      expect(processorsOf(postgres())).toEqual(usableProcessors());
    }
  });

  it('share the rate of a client', async () => {
    const created = await yard.run(['client', 'create', 'fast']);
    const [, client] = /client (\d+) /.exec(created.stdout)!;
    const token = await newToken('--client', client!);
    const connections = Array.from({ length: 8 }, () => openConnection(token));
    const statuses: number[] = [];
    const began = performance.now();
    await Promise.all(
      connections.map(async ({ get }) => {
        let status = 200;
        while (status === 200 && performance.now() - began < 60_000)
          statuses.push((status = await get('/cloud/v1/regions/1')));
      }),
    );
    for (const { close } of connections) close();
    const seconds = (performance.now() - began) / 1000;
    const accepted = statuses.filter((status) => status === 200).length;
    expect(statuses).toContain(429);
    expect(accepted).toBeLessThanOrEqual(ratePerMinute * (1 + seconds / 60));
    expect(accepted).toBeGreaterThan(ratePerMinute * 0.8);
  });
});
