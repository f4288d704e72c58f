/**
 * How long changes, convergence and fail-over take in a region of three hosts with many load balancers and file shares.
 * BENCH_BALANCERS and BENCH_SHARES set how many.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { skipReason } from '../test/requires.ts';
import { startGapClient } from '../test/several-hosts/balancer-region.ts';
import { type LabNode, labWorks } from '../test/several-hosts/lab.ts';
import { startWriter } from '../test/several-hosts/nfs-hosts.ts';
import { until } from '../test/until.ts';
import {
  createBalancer,
  createMany,
  createShare,
  type HostsRegion,
  leaseSeconds,
  shareOn,
  startHostsRegion,
  urlOn,
} from './hosts-region.ts';
import type { Row } from './table.ts';
import { residentMegabytes, timesOf } from './usage.ts';
import type { Workplace } from './workplace.ts';

const defaultBalancers = 1000;
const defaultShares = 300;
const idleMs = 20_000;

type Unit = 'ms' | 's' | 'MB' | 'failures';

const row = (what: string, values: number[], unit: Unit, atMost: number): Row => ({
  ...{ what: `hosts: ${what}`, values, unit, bar: { atMost } },
});

export async function severalHosts(workplace: Workplace): Promise<Row[]> {
  if (!labWorks()) return [{ what: 'hosts', why: 'skipped: it needs root, iproute2 and haproxy' }];
  const balancers = Number(process.env['BENCH_BALANCERS'] ?? defaultBalancers);
  const shares = Number(process.env['BENCH_SHARES'] ?? defaultShares);
  const region = await startHostsRegion(workplace);
  return [
    row(
      `${balancers} balancers created`,
      [await seconds(() => createMany(() => createBalancer(region), balancers))],
      's',
      300,
    ),
    ...(region.hasShares
      ? [
          row(
            `${shares} shares created`,
            [await seconds(() => createMany(() => createShare(region), shares))],
            's',
            300,
          ),
        ]
      : [{ what: 'hosts: file shares', why: skipReason('ceph', 'ceph-mds', 'nfs-ganesha-ceph', 'iputils-arping')! }]),
    ...(await atRest(region)),
    ...(await returning(region)),
    ...(await dying(region)),
    ...(await draining(region)),
  ];
}

async function atRest(region: HostsRegion): Promise<Row[]> {
  const pid = region.pidOf('h3');
  const before = timesOf(pid)!.own;
  await sleep(idleMs);
  const idleCpu = (timesOf(pid)!.own - before) / (idleMs / 1000);
  const creates: number[] = [];
  for (let at = 0; at < 7; at++) creates.push((await seconds(() => createBalancer(region))) * 1000);
  return [
    row('one more balancer, p50', creates, 'ms', 1000),
    row('memory of an agent', [residentMegabytes(pid)], 'MB', 300),
    row('CPU time of an idle agent, ms a second', [idleCpu], 'ms', 50),
  ];
}

async function returning(region: HostsRegion): Promise<Row[]> {
  const h3 = region.lab.node('h3');
  await h3.die();
  const whileAway = await seconds(() => createBalancer(region));
  await h3.boot();
  region.startAgent(h3);
  const converged = await seconds(region.untilServing);
  return [
    row('a create while a host is dead', [whileAway], 's', leaseSeconds + 4),
    row('a dead host returns until it serves', [converged], 's', 60),
  ];
}

async function dying(region: HostsRegion): Promise<Row[]> {
  const h1 = region.lab.node('h1');
  const gaps = await gapsOf(region, h1, () => h1.die());
  await h1.boot();
  region.startAgent(h1);
  await region.untilServing();
  return [
    row('host dies: longest gap of HTTP', [gaps.http.longestGapMs], 'ms', 2000),
    ...(gaps.nfsMs === null
      ? []
      : [row('host dies: longest gap of NFS with open file and lock', [gaps.nfsMs], 'ms', 8000)]),
  ];
}

async function draining(region: HostsRegion): Promise<Row[]> {
  const gaps = await gapsOf(region, region.lab.node('h2'), async () => {
    await region.yard.post('/cloudyard/v1/hosts/1/h2/drain');
    await until(async () => (await region.host('h2')).state === 'drained', 180, 'h2 is drained');
  });
  return [
    row('drain: failed HTTP requests', [gaps.http.failures], 'failures', 0),
    ...(gaps.nfsMs === null
      ? []
      : [row('drain: longest gap of NFS with open file and lock', [gaps.nfsMs], 'ms', 6000)]),
  ];
}

/** What clients of a host see while it leaves: of a load balancer, and of a share with an open file and a lock. */
async function gapsOf(region: HostsRegion, node: LabNode, event: () => Promise<void>) {
  const client = region.lab.clients[0]!;
  const url = await urlOn(node);
  const writer = region.hasShares ? startWriter(client) : null;
  if (writer) {
    const { share, group } = await shareOn(region, node);
    await writer.open(share, { name: `written-${node.name}`, group });
    await writer.write();
    await writer.untilWritten(20);
    await writer.report();
  }
  const measuring = await startGapClient(client, url);
  await event();
  await measuring.answering();
  const http = await measuring.stop();
  if (!writer) return { http, nfsMs: null };
  await writer.untilWritten(20);
  const { longestGapMs: nfsMs } = await writer.report();
  await writer.stop();
  if (!(await writer.verify())) throw new Error('a file does not have what was written');
  await writer.close();
  return { http, nfsMs };
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
