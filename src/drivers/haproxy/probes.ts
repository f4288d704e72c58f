/**
 * Health monitors that HAProxy and nginx do not have: PING, and UDP-CONNECT. Probed from here, with the same counting as
 * theirs: the first answer decides, then `maxRetriesDown` failures in a row take a member out and `maxRetries`
 * successes bring it back.
 *
 * UDP-CONNECT sends an empty datagram from a connected socket: a host without that port answers with an ICMP error
 * (ECONNREFUSED), and silence counts as there. While this process is down, the last verdicts stay in force.
 */
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { run } from '../command.ts';
import type { DesiredMember, DesiredMonitor, DesiredPool } from '../load-balancer.ts';
import { limited } from '../turns.ts';
import { isProbedByDriver } from './monitor-lines.ts';

export interface Probes {
  /** Looks at what is desired now: begins, goes on, ends. */
  update(): void;
  /** Undefined while nothing is known, or nobody asks. */
  verdict(member: string): boolean | undefined;
  stop(): void;
}

export interface ProbesOptions {
  pools(): Iterable<DesiredPool>;
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

const PINGS_AT_A_TIME = 8;

export function probesFor(options: ProbesOptions): Probes {
  const probes = new Map<string, Probe>();
  const turn = limited(PINGS_AT_A_TIME);
  const check = (member: DesiredMember, monitor: DesiredMonitor) => {
    const host = member.monitorAddress ?? member.address;
    if (monitor.type !== 'PING') return udpAnswers(host, member.monitorPort ?? member.port, monitor.timeout);
    return turn(() => pings(options.ping ?? 'ping', host, monitor.timeout));
  };

  function begin(member: DesiredMember, pool: DesiredPool, monitor: DesiredMonitor, key: string): void {
    const old = probes.get(member.id);
    end(old);
    const probe: Probe = { key, timer: null, ended: false, up: old?.up, against: 0 };
    probes.set(member.id, probe);
    const round = async () => {
      const good = await check(member, monitor).catch(() => false);
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
      for (const pool of options.pools()) {
        const { monitor } = pool;
        if (!monitor || !pool.enabled || !isProbedByDriver(pool)) continue;
        for (const member of pool.members) {
          if (!member.enabled) continue;
          wanted.add(member.id);
          const where = [member.address, member.port, member.monitorAddress, member.monitorPort];
          const key = JSON.stringify([pool.id, monitor, where]);
          if (probes.get(member.id)?.key !== key) begin(member, pool, monitor, key);
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
  await run(program, ['-n', '-q', '-c', '1', '-W', String(seconds), address], { timeout: seconds + 5 });
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
