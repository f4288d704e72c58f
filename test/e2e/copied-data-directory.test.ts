/**
 * A copy of a data directory, made while everything runs, so with all pid files: a start on it ends no daemon of the original,
 * adopts none, and runs its own.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { liveProcess, processIn } from '../../src/platform/running-processes.ts';
import { openYard, processesOf, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { serveBoth, type Served } from './balanced.ts';

vi.setConfig({ testTimeout: 300_000 });

const parts = ['haproxy', 'nginx', 'nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'docker-registry', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a copy of a data directory', () => {
  const yards: Yard[] = [];
  let served: Served | undefined;
  afterEach(() => {
    served?.close();
    for (const yard of yards.splice(0)) yard.cleanUp();
  });
  const settings = { CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy', CLOUDYARD_REGISTRY_DRIVER: 'distribution' };
  const newYard = async (options = {}) => {
    const port = String(await freePort());
    const yard = await openYard({ ...settings, CLOUDYARD_REGISTRY_PORT: port }, options);
    yards.push(yard);
    return yard;
  };
  /** Pids and start times of the daemons by name, as their pid files in the data directory name them. */
  const daemons = ({ dataDir }: Yard) =>
    Object.fromEntries(
      pidFiles(dataDir).flatMap((file) => {
        const found = processIn(join(dataDir, file));
        return found && processesOf(dataDir).includes(found.pid) ? [[file, `${found.pid} ${found.startTime}`]] : [];
      }),
    );

  it('starts without an effect on the daemons of the original', async () => {
    const yard = await newYard();
    await yard.start(['start']);
    served = await serveBoth(yard);
    await addUdp(yard);
    const before = daemons(yard);
    expect(Object.keys(before).map(nameOf).sort()).toEqual(expect.arrayContaining(names));

    const copy = await newYard({ isEmpty: true });
    execFileSync('cp', ['-a', '--sparse=always', `${yard.dataDir}/.`, copy.dataDir]);
    expect(pidFiles(copy.dataDir).map(nameOf)).toEqual(expect.arrayContaining(names));
    // Addresses and ports of its load balancers are in use by the original.
    const running = copy.spawn(['start']);
    await vi.waitUntil(() => /is ready/.test(running.stdout()) || !liveProcess(running.pid), { timeout: 100_000 });
    expect(daemons(yard)).toEqual(before);
    const own = Object.values(daemons(copy));
    expect(own.filter((each) => Object.values(before).includes(each))).toEqual([]);
    await running.stop();
    expect(daemons(yard)).toEqual(before);
    await served.readFile();
    await served.request();
  });
});

const names = ['distribution', 'haproxy', 'nginx', 'postmaster'];
const nameOf = (file: string) => /([\w-]+)\.pid$/.exec(file)![1]!;

function pidFiles(dataDir: string): string[] {
  return readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.pid') && existsSync(join(dataDir, file)),
  );
}

async function addUdp(yard: Yard): Promise<void> {
  const body = {
    name: 'udp',
    listeners: [{ name: 'dns', protocol: 'UDP', protocol_port: 5353 }],
  };
  const task = await yard.ended(await yard.post('/cloud/v1/loadbalancers/1/1', body));
  expect(task.state).toBe('FINISHED');
}
