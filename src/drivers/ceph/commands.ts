/** Commands of the monitors and the manager: free space, health; subvolumes.ts has those of a CephFS. */
import { constants } from 'node:os';
import type { DiskSpace } from '../../platform/driver-status.ts';
import type { CephCaller } from './bridge.ts';
import { cephError } from './errors.ts';

type Arguments = Record<string, unknown> & { prefix: string };

/** Returns the parsed response; null: an empty one. @throws DriverError */
export async function monitorCommand<Result>(bridge: CephCaller, command: Arguments): Promise<Result> {
  return parsed(await send(bridge, 'mon', command)) as Result;
}

/** As `monitorCommand`. */
export async function managerCommand<Result>(bridge: CephCaller, command: Arguments): Promise<Result> {
  return parsed(await send(bridge, 'mgr', command)) as Result;
}

const send = (bridge: CephCaller, target: 'mon' | 'mgr', command: Arguments) =>
  bridge.call<string>('command', { target, command: { format: 'json', ...command } });

const parsed = (text: string): unknown => (text.trim() === '' ? null : JSON.parse(text));

/** The space that is free for a pool, after replication; `reserve`: percent of it that stays free. */
export async function poolSpace(bridge: CephCaller, pool: string, reserve: number): Promise<DiskSpace> {
  const { pools } = await monitorCommand<{ pools: PoolUsage[] }>(bridge, { prefix: 'df' });
  const found = pools.find(({ name }) => name === pool);
  if (!found) throw cephError('df', constants.errno.ENOENT, `the pool ${pool} does not exist`);
  const { stored, max_avail } = found.stats;
  const totalBytes = stored + max_avail;
  return { freeBytes: max_avail, totalBytes, reserveBytes: Math.ceil((totalBytes * reserve) / 100) };
}

/** `HEALTH_OK`, or the level with the problems that the operator has not muted: `HEALTH_WARN: 1 osds down`. */
export async function clusterHealth(bridge: CephCaller): Promise<string> {
  const { status, checks } = await monitorCommand<Health>(bridge, { prefix: 'health' });
  const problems = Object.values(checks).flatMap(({ summary, muted }) => (muted ? [] : [summary.message]));
  return problems.length === 0 ? status : `${status}: ${problems.join(', ')}`;
}

interface Health {
  status: string;
  checks: Record<string, { summary: { message: string }; muted?: boolean }>;
}

interface PoolUsage {
  name: string;
  stats: { stored: number; max_avail: number };
}
