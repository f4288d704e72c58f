/** A listening Cloudyard that measures the cost of requests: CPU time in one turn of the event loop, and memory. */
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect } from 'vitest';
import { type Cloudyard, useCloudyard } from '../harness.ts';
import { type Cost, watchEventLoop } from './event-loop-cost.ts';
import { type Received, type Sender, startSender } from './http-sender.ts';

export const maxBlockedMs = 50;
export const maxBytes = 64 * 1024 * 1024;
const maxErrors = 100;
/** Requests that exceed a bound are repeated: code is slow until it is compiled, and the machine has other load. */
const attempts = 5;

interface Measured {
  received: Received[];
  cost: Cost;
}

type Requests = () => Promise<Received[]>;

interface MeasuredCloud {
  cloud: Cloudyard;
  /** Sends a request from another thread with a new `Idempotency-Key`. The default `token` is the operator's. */
  send(
    method: string,
    path: string,
    body?: string,
    token?: string | null,
    type?: string,
    headers?: Record<string, string>,
  ): Promise<Received>;
  /** Returns the first attempt within the bounds, or the one with the shortest turn. `prepare` runs before each. */
  measure(requests: Requests, prepare?: () => Promise<void>): Promise<Measured>;
  /** Expects that the requests stay within the bounds. Returns the responses. */
  expectCheap(requests: Requests): Promise<Received[]>;
}

/** Call at the top of a test file; use the returned object inside tests only. */
export function useMeasuredCloud(): MeasuredCloud {
  const cloud = useCloudyard({ audit: false });
  let sender: Sender;
  let port: number;

  beforeAll(async () => {
    await cloud.app.listen({ host: '127.0.0.1', port: 0 });
    // As in a server that has run for some seconds.
    await cloud.app.compileShapes();
    port = (cloud.app.server.address() as AddressInfo).port;
    sender = startSender();
    for (let i = 0; i < 20; i++) await send('GET', '/cloud/v1/projects');
  });
  afterAll(() => sender?.stop());

  const send: MeasuredCloud['send'] = (method, path, body, token = cloud.admin, type = 'application/json', headers) =>
    sender.send({
      port,
      method: method.toUpperCase(),
      path,
      headers: {
        ...(token && { authorization: `apikey ${token}` }),
        ...(body !== undefined && { 'content-type': type }),
        'idempotency-key': `cost-${Math.random()}`,
        ...headers,
      },
      ...(body !== undefined && { body }),
    });

  const measure: MeasuredCloud['measure'] = async (requests, prepare) => {
    let best: Measured | undefined;
    for (let i = 0; i < attempts; i++) {
      await prepare?.();
      const sent = requests();
      const stop = watchEventLoop({ clean: i > 0 });
      const received = await sent;
      const measured = { received, cost: stop() };
      // The shortest turn and the least memory may be those of different attempts.
      if (problemOf(measured) === undefined) return measured;
      if (!best || measured.cost.blockedMs < best.cost.blockedMs) best = measured;
    }
    return best!;
  };

  return {
    cloud,
    send,
    measure,
    async expectCheap(requests) {
      const measured = await measure(requests);
      expect(problemOf(measured)).toBe(undefined);
      return measured.received;
    },
  };
}

/** The problem of a response or of its cost, or undefined. */
export function problemOf({ received, cost }: Measured): string | undefined {
  for (const { status, text, errorCount } of received) {
    if (status < 200 || status >= 500) return `returns ${status}: ${text.slice(0, 300)}`;
    if (errorCount > maxErrors) return `returns ${errorCount} errors`;
  }
  if (cost.blockedMs > maxBlockedMs) return `blocks the event loop for ${cost.blockedMs.toFixed(0)} ms`;
  if (cost.bytes > maxBytes) return `takes ${(cost.bytes / 1024 / 1024).toFixed(0)} MB`;
  return undefined;
}
