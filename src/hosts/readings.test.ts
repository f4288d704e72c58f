import { describe, expect, it } from 'vitest';
import { type ListenerCounters, type MemberHealth, zeroCounters } from '../drivers/load-balancer.ts';
import { createReadingMerger, type ReportedReading } from './readings.ts';

const reading = (counters: Partial<ListenerCounters>, health: MemberHealth = 'UP'): ReportedReading[] => [
  { id: 'balancer', members: [['member', health]], listeners: [['listener', { ...zeroCounters, ...counters }]] },
];
const hosts = (entries: Record<string, ReportedReading[]>) => new Map(Object.entries(entries));

describe('the readings of several hosts', () => {
  it('add up what each host has counted since its first reading', () => {
    const merge = createReadingMerger();
    const counters = (entries: Record<string, ReportedReading[]>) =>
      merge(hosts(entries))[0]!.listeners.get('listener');
    expect(counters({ h1: reading({ bytesIn: 1000 }), h2: reading({ bytesIn: 5 }) })).toMatchObject({ bytesIn: 0 });
    expect(counters({ h1: reading({ bytesIn: 1010 }), h2: reading({ bytesIn: 25 }) })).toMatchObject({ bytesIn: 30 });
    // A host is away, and returns with a new proxy.
    expect(counters({ h1: reading({ bytesIn: 1011 }) })).toMatchObject({ bytesIn: 31 });
    expect(counters({ h1: reading({ bytesIn: 1011 }), h2: reading({ bytesIn: 7 }) })).toMatchObject({ bytesIn: 38 });
    // Reading again changes nothing.
    expect(counters({ h1: reading({ bytesIn: 1011 }), h2: reading({ bytesIn: 7 }) })).toMatchObject({ bytesIn: 38 });
  });

  it('count a new listener of a known host from zero', () => {
    const merge = createReadingMerger();
    merge(hosts({ h1: [] }));
    expect(merge(hosts({ h1: reading({ requests: 3 }) }))[0]!.listeners.get('listener')).toMatchObject({ requests: 3 });
  });

  it('sum open connections, also when they end', () => {
    const merge = createReadingMerger();
    const active = (one: number, other: number) =>
      merge(
        hosts({ h1: reading({ activeConnections: one }), h2: reading({ activeConnections: other }) }),
      )[0]!.listeners.get('listener')!.activeConnections;
    expect(active(2, 3)).toBe(5);
    expect(active(0, 1)).toBe(1);
  });

  it('have the best health that a host reports', () => {
    const health = (...each: MemberHealth[]) => {
      const entries = each.map((one, i): [string, ReportedReading[]] => [`h${i}`, reading({}, one)]);
      return createReadingMerger()(new Map(entries))[0]!.members.get('member');
    };
    expect(health('DOWN', 'UP', 'DOWN')).toBe('UP');
    expect(health('DOWN', 'DOWN')).toBe('DOWN');
    expect(health('UNCHECKED', 'DOWN')).toBe('UNCHECKED');
  });

  it('of no host are empty', () => {
    expect(createReadingMerger()(new Map())).toEqual([]);
  });
});
