/** The lease of a host: its name, and the file from which others on the host read until when it may hold addresses. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { leaseFileOf } from './part.ts';
import { eventually, openRegion } from './test-region.ts';

it('a host keeps its name while its agent is replaced, although another machine waits for the name', async (t) => {
  const region = await openRegion(t, { leaseSeconds: 5 });
  const [h1] = await region.startAll('h1');
  await region.publish('a', 1);
  const refused = region.start('h1', { address: '127.0.0.9' }).catch((thrown: unknown) => String(thrown));
  await h1!.stop('keepDataPlanes');
  // It attempts to take the lease every 0.3 s.
  await sleep(700);
  const successor = await region.start('h1', { world: h1!.world });
  await region.publish('a', 2);
  expect(successor.world.get('a')).toBe(2);
  expect(await refused).toContain('another agent is the host h1');
  expect(await region.hosts()).toMatchObject([{ address: '127.0.0.1', leaseValid: true, converged: true }]);
});

it('a host renews its file, and follows the operator, while its disk has no space for another file', async (t) => {
  const region = await openRegion(t);
  const [h1] = await region.startAll('h1', 'h2');
  await eventually(() => expect(h1!.calls).toContain('serve'));
  const file = leaseFileOf(h1!.dataDir);
  mkdirSync(`${file}.new`);
  const until = Number(readFileSync(file, 'utf8'));
  await eventually(() => expect(Number(readFileSync(file, 'utf8'))).toBeGreaterThan(until + region.leaseSeconds));
  expect((await region.hosts())[0]).toMatchObject({ leaseValid: true, converged: true });
  await region.setState('h1', 'draining');
  await eventually(async () => expect((await region.hosts())[0]!.state).toBe('drained'));
  expect(existsSync(file)).toBe(false);
});

it('a host stops serving while its file cannot be written, and then serves again', async (t) => {
  const region = await openRegion(t);
  const [h1] = await region.startAll('h1');
  await eventually(() => expect(h1!.calls).toContain('serve'));
  const file = leaseFileOf(h1!.dataDir);
  rmSync(file);
  mkdirSync(file);
  await eventually(() => expect(h1!.calls).toContain('stopServing'));
  rmSync(file, { recursive: true });
  await eventually(() => expect(existsSync(file)).toBe(true));
  await eventually(async () => expect((await region.hosts())[0]).toMatchObject({ leaseValid: true, converged: true }));
});

it('a host writes until when it may hold addresses, in seconds of /proc/uptime', async (t) => {
  const region = await openRegion(t);
  const [h1] = await region.startAll('h1');
  await eventually(() => expect(h1!.calls).toContain('serve'));
  const until = Number(readFileSync(leaseFileOf(h1!.dataDir), 'utf8'));
  expect(until).toBeGreaterThan(uptime() - 30);
  expect(until).toBeLessThanOrEqual(uptime() + 2);
});
