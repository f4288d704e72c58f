/** The cost of event streams for the process, whatever their filters. */
import { expect, it } from 'vitest';
import type { Actor } from '../authz/actor.ts';
import { tokenReader } from '../authz/access.ts';
import { createRing } from './ring.ts';
import type { ResourceEvent } from './source.ts';
import { createStreams } from './streams.ts';

const actor: Actor = { tokenId: 1, clientId: 1, role: 'reader', projectIds: null, operator: false };
const others = { client_id: 2, project_id: 2, region_id: 1, task_id: null, at: '2026-11-20T10:00:00Z' };

/** Milliseconds in which 100 streams, which include these projects, skip 2,000 events of another client. */
function costOf(projectIds: ReadonlySet<number>): number {
  const ring = createRing(10_000);
  const streams = createStreams({ feed: { ring, watch() {} } as never, kinds: new Map([['network', tokenReader]]) });
  const sink = { write() {}, isFull: () => false, end() {} };
  const request = { actor, projectIds, kinds: null, lastEventId: null, credential: 'x', check: () => actor };
  const opened = Array.from({ length: 100 }, () => streams.add(request, sink));
  for (let i = 0; i < 2000; i++) {
    const event: ResourceEvent = { id: `${i}.0`, kind: 'network', resource_id: 'x', change: 'created', ...others };
    ring.push({ event, text: '' });
  }
  const began = performance.now();
  for (const stream of opened) stream.drained();
  streams.stop();
  return performance.now() - began;
}

it('a stream of a thousand projects costs as much as one of a single project', () => {
  const many = new Set(Array.from({ length: 1000 }, (_, i) => 1000 + i));
  costOf(new Set([1]));
  const [one, thousand] = [costOf(new Set([1])), costOf(many)];
  expect(thousand).toBeLessThan(one * 10 + 50);
});
