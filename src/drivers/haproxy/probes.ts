/**
 * Health monitors that HAProxy and nginx do not have: PING, and UDP-CONNECT. Probed from here, with the same counting as
 * theirs: the first answer decides, then `maxRetriesDown` failures in a row take a member out and `maxRetries`
 * successes bring it back.
 *
 * UDP-CONNECT sends an empty datagram from a connected socket: a host without that port answers with an ICMP error
 * (ECONNREFUSED), and silence counts as there. While this process is down, the last verdicts stay in force.
 *
 * Each tenant has turns of its own: members that never answer delay the probes of their tenant only.
 */
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { run } from '../command.ts';
import { accountFor, confined } from '../confined.ts';
import type { DesiredMember, DesiredMonitor, DesiredPool } from '../load-balancer.ts';
import { limited, type Turn } from '../turns.ts';
import { isProbedByDriver } from './monitor-lines.ts';
import type { Spec } from './specs.ts';

export interface Probes {
  /** Looks at what is desired now: begins, goes on, ends. */
  update(): void;
  /** Undefined while nothing is known, or nobody asks. */
  verdict(member: string): boolean | undefined;
  stop(): void;
}

export interface ProbesOptions {
  /** Those of disabled load balancers are not probed. */
  specs(): Iterable<Pick<Spec, 'tenant' | 'enabled' | 'pools'>>;
  ping: string | null;
  /** A verdict has changed. */
  onChange(pool: DesiredPool): void;
  log: Logger;
}

interface Probe {
  /** What it was begun with. */
  key: string;
  timer: NodeJS.Timeout | null;
  ended: boolean;
  up: boolean | undefined;
  /** Results in a row that speak against `up`. */
  against: number;
}

/** Of one tenant. A ping is a process, so each is followed by a pause: at most 40 a second. */
const PINGS_AT_A_TIME = 4;
const PING_PAUSE_MS = 100;
/** Of one tenant. Each holds a socket until its timeout. */
const DATAGRAMS_AT_A_TIME = 256;

export function probesFor(options: ProbesOptions): Probes {
  const probes = new Map<string, Probe>();
  const turns = new Map<string, Turn>();
  const turnOf = (tenant: string, slots: number) => {
    const key = `${tenant} ${slots}`;
    const turn = turns.get(key) ?? limited(slots);
    turns.set(key, turn);
    return turn;
  };
  const check = (member: DesiredMember, monitor: DesiredMonitor, tenant: string): Promise<boolean> => {
    const { timeout } = monitor;
    const host = member.monitorAddress ?? member.address;
    const port = member.monitorPort ?? member.port;
    if (monitor.type !== 'PING') return turnOf(tenant, DATAGRAMS_AT_A_TIME)(() => udpAnswers(host, port, timeout));
    return turnOf(
      tenant,
      PINGS_AT_A_TIME,
    )(() =>
      pings(options.ping ?? 'ping', host, timeout).finally(() => sleep(PING_PAUSE_MS, undefined, { ref: false })),
    );
  };

  function begin(member: DesiredMember, pool: DesiredPool, monitor: DesiredMonitor, key: string, tenant: string): void {
    const old = probes.get(member.id);
    end(old);
    const probe: Probe = { key, timer: null, ended: false, up: old?.up, against: 0 };
    probes.set(member.id, probe);
    const round = async () => {
      const good = await check(member, monitor, tenant).catch(() => false);
      if (probe.ended) return;
      if (count(probe, good, monitor)) {
        options.log.info({ member: member.id, pool: pool.id, up: probe.up }, 'probed member changed');
        options.onChange(pool);
      }
      probe.timer = setTimeout(round, monitor.delay);
      probe.timer.unref();
    };
    void round();
  }

  return {
    update() {
      const wanted = new Set<string>();
      for (const { tenant, pool, monitor } of probedPools(options.specs())) {
        for (const member of pool.members) {
          if (!member.enabled) continue;
          wanted.add(member.id);
          const where = [member.address, member.port, member.monitorAddress, member.monitorPort];
          const key = JSON.stringify([pool.id, monitor, where]);
          if (probes.get(member.id)?.key !== key) begin(member, pool, monitor, key, tenant);
        }
      }
      for (const [id, probe] of probes) {
        if (wanted.has(id)) continue;
        end(probe);
        probes.delete(id);
      }
    },
    verdict: (member) => probes.get(member)?.up,
    stop() {
      for (const probe of probes.values()) end(probe);
      probes.clear();
    },
  };
}

function* probedPools(specs: ReturnType<ProbesOptions['specs']>) {
  for (const { tenant, enabled, pools } of specs) {
    for (const pool of enabled ? pools : []) {
      const { monitor } = pool;
      if (monitor && pool.enabled && isProbedByDriver(pool)) yield { tenant, pool, monitor };
    }
  }
}

/** True when the verdict changes. */
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

async function pings(program: string, address: string, timeout: number): Promise<boolean> {
  const seconds = Math.max(timeout / 1000, 0.1);
  const command = { file: program, args: ['-n', '-q', '-c', '1', '-W', String(seconds), address] };
  const { file, args } = confined(command, accountFor('nginx'), ['net_raw']);
  await run(file, args, { timeout: seconds + 5 });
  return true;
}

function udpAnswers(address: string, port: number, timeout: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
    const done = (good: boolean) => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      socket.close();
      resolve(good);
    };
    const timer = setTimeout(() => done(true), timeout);
    timer.unref();
    socket.on('error', () => done(false)).on('message', () => done(true));
    socket.connect(port, address, () => socket.send(Buffer.alloc(0), (err) => err && done(false)));
    socket.unref();
  });
}
