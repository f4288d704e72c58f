/**
 * Health monitors that HAProxy and nginx do not support: PING and UDP-CONNECT. Results count as in HAProxy: the first one
 * decides, then `maxRetriesDown` consecutive failures mark a member down and `maxRetries` successes mark it up.
 *
 * UDP-CONNECT sends an empty datagram from a connected socket. A host without a listener on that port sends an ICMP error
 * (ECONNREFUSED); no response counts as success.
 *
 * Invariants:
 * - Members that do not respond delay the probes of their own tenant only.
 * - Only a response, its absence or an error of the network is a result. A `ping` that was killed or did not start, and a
 *   socket that this host could not open, say nothing about the member, whose result stays.
 *
 * Failure modes: while this process is down, the last results remain in force.
 */
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../platform/log.ts';
import { exitStatus, run } from '../command.ts';
import { accountFor, confined } from '../confined.ts';
import { DriverError } from '../driver.ts';
import type { DesiredMember, DesiredMonitor, DesiredPool } from '../load-balancer.ts';
import { limited, type Turn } from '../../platform/turns.ts';
import { isProbedByDriver } from './monitor-lines.ts';
import type { Spec } from './specs.ts';

interface ProbesOptions {
  /** Those of disabled load balancers are not probed. */
  specs(): Iterable<Pick<Spec, 'tenant' | 'enabled' | 'pools'>>;
  ping: string | null;
  /** Runs after a changed result. */
  onChange(pool: DesiredPool): void;
  log: Logger;
}

/** Whether the member responds; null: unknown. */
type Result = boolean | null;

interface Probe {
  /** The settings of the probe. */
  key: string;
  timer: NodeJS.Timeout | null;
  ended: boolean;
  up: boolean | undefined;
  /** The number of consecutive results that contradict `up`. */
  against: number;
}

/** For each tenant. A ping is a process and followed by a pause, so there are at most 40 a second. */
const MAX_PINGS = 4;
const PING_PAUSE_MS = 100;
/** For each tenant. Every probe has a socket until its timeout. */
const MAX_DATAGRAMS = 256;
/** Timers of Node have 31 bits of milliseconds. A longer one ends at once. */
const MAX_TIMER_MS = 2_000_000_000;

export function createProbes(options: ProbesOptions) {
  const probes = new Map<string, Probe>();
  const turns = new Map<string, Turn>();
  const turnOf = (tenant: string, slots: number) => {
    const key = `${tenant} ${slots}`;
    const turn = turns.get(key) ?? limited(slots);
    turns.set(key, turn);
    return turn;
  };
  const check = (member: DesiredMember, monitor: DesiredMonitor, tenant: string): Promise<Result> => {
    const { timeout } = monitor;
    const host = member.monitorAddress ?? member.address;
    const port = member.monitorPort ?? member.port;
    if (monitor.type !== 'PING') return turnOf(tenant, MAX_DATAGRAMS)(() => probeUdp(host, port, timeout));
    const pingAndPause = () =>
      ping(options.ping ?? 'ping', host, timeout).finally(() => sleep(PING_PAUSE_MS, undefined, { ref: false }));
    return turnOf(tenant, MAX_PINGS)(pingAndPause);
  };

  function start(member: DesiredMember, pool: DesiredPool, monitor: DesiredMonitor, key: string, tenant: string): void {
    const old = probes.get(member.id);
    end(old);
    const probe: Probe = { key, timer: null, ended: false, up: old?.up, against: 0 };
    probes.set(member.id, probe);
    const round = async () => {
      const good = await check(member, monitor, tenant).catch(() => null);
      if (probe.ended) return;
      if (good !== null && count(probe, good, monitor)) {
        options.log.info({ member: member.id, pool: pool.id, up: probe.up }, 'the health of a probed member changed');
        options.onChange(pool);
      }
      probe.timer = setTimeout(round, monitor.delay);
      probe.timer.unref();
    };
    void round();
  }

  return {
    /** Starts and stops probes to match the current specs. */
    update(): void {
      const wanted = new Set<string>();
      for (const { tenant, pool, monitor } of probedPools(options.specs())) {
        for (const member of pool.members) {
          if (!member.enabled) continue;
          wanted.add(member.id);
          const target = [member.address, member.port, member.monitorAddress, member.monitorPort];
          const key = JSON.stringify([pool.id, monitor, target]);
          if (probes.get(member.id)?.key !== key) start(member, pool, monitor, key, tenant);
        }
      }
      for (const [id, probe] of probes) {
        if (wanted.has(id)) continue;
        end(probe);
        probes.delete(id);
      }
    },
    /** Undefined before the first result, and for members without such a monitor. */
    verdict: (member: string) => probes.get(member)?.up,
    stop(): void {
      for (const probe of probes.values()) end(probe);
      probes.clear();
    },
  };
}

export type Probes = ReturnType<typeof createProbes>;

function* probedPools(specs: ReturnType<ProbesOptions['specs']>) {
  for (const { tenant, enabled, pools } of specs) {
    for (const pool of enabled ? pools : []) {
      const { monitor } = pool;
      if (monitor && pool.enabled && isProbedByDriver(pool)) yield { tenant, pool, monitor: withTimers(monitor) };
    }
  }
}

function withTimers(monitor: DesiredMonitor): DesiredMonitor {
  const { delay, timeout } = monitor;
  return { ...monitor, delay: Math.min(delay, MAX_TIMER_MS), timeout: Math.min(timeout, MAX_TIMER_MS) };
}

/** Returns whether the result changed. */
function count(probe: Probe, good: boolean, { maxRetries, maxRetriesDown }: DesiredMonitor): boolean {
  if (probe.up === good) {
    probe.against = 0;
    return false;
  }
  probe.against += 1;
  if (probe.up !== undefined && probe.against < (good ? maxRetries : maxRetriesDown)) return false;
  probe.up = good;
  probe.against = 0;
  return true;
}

function end(probe: Probe | undefined): void {
  if (!probe) return;
  probe.ended = true;
  if (probe.timer) clearTimeout(probe.timer);
}

/** Statuses of `ping` itself: no response, and another error such as an unreachable network. */
const PING_FAILED = [1, 2];

async function ping(program: string, address: string, timeout: number): Promise<Result> {
  const seconds = Math.max(timeout / 1000, 0.1);
  const command = { file: program, args: ['-n', '-q', '-c', '1', '-W', String(seconds), address] };
  const { file, args } = confined(command, accountFor('nginx'), ['net_raw']);
  try {
    await run(file, args, { timeout: seconds + 5 });
    return true;
  } catch (error) {
    const isShortage = error instanceof DriverError && error.shortage;
    return !isShortage && PING_FAILED.includes(exitStatus(error) ?? 0) ? false : null;
  }
}

/** Errors of this host, not of the network. */
const HOST_ERRORS = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EAGAIN']);

function probeUdp(address: string, port: number, timeout: number): Promise<Result> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
    const done = (result: Result) => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      socket.close();
      resolve(result);
    };
    const fail = (error: NodeJS.ErrnoException) => done(HOST_ERRORS.has(error.code ?? '') ? null : false);
    const timer = setTimeout(() => done(true), timeout);
    timer.unref();
    const send = () => socket.send(Buffer.alloc(0), (error) => error && fail(error));
    socket
      .on('error', fail)
      .on('message', () => done(true))
      .on('connect', send);
    // Without a callback: it would also get the error, for example of an address without a route.
    socket.connect(port, address);
    socket.unref();
  });
}
