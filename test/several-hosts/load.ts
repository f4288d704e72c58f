/** A client on a node of a lab, and creates without a pause while hosts fail. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LabNode } from './lab.ts';

interface Answer {
  /** 0: no response within 3 s. */
  status: number;
  body: string;
}

export interface ApiClient {
  request(method: string, url: string, options?: { body?: unknown; key?: string; token?: string }): Promise<Answer>;
  /** Repeats a change with the same `Idempotency-Key` until it succeeds. @throws for an answer that repeating cannot change */
  insist(method: string, url: string, body: unknown): Promise<Answer>;
}

/** The client ends with its node. */
export function startClient(from: LabNode, token: string): ApiClient {
  const child = from.spawn(process.execPath, [join(import.meta.dirname, 'api-client.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting = new Map<string, (answer: Answer) => void>();
  createInterface(child.stdout!).on('line', (line) => {
    const { id, ...answer } = JSON.parse(line) as Answer & { id: string };
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  const request: ApiClient['request'] = (method, url, { body, key, token: own = token } = {}) => {
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const id = randomUUID();
    waiting.set(id, resolve);
    const headers = {
      authorization: `APIKey ${own}`,
      'content-type': 'application/json',
      ...(key !== undefined && { 'idempotency-key': key }),
    };
    const text = body === undefined ? undefined : JSON.stringify(body);
    child.stdin!.write(`${JSON.stringify({ id, method, url, headers, body: text })}\n`);
    return promise;
  };
  return {
    request,
    async insist(method, url, body) {
      const key = randomUUID();
      for (;;) {
        const answer = await request(method, url, { body, key });
        if (answer.status === 200) return answer;
        // 409: another change of the resource has not ended.
        if (![0, 409, 503].includes(answer.status))
          throw new Error(`${method} ${url}: ${answer.status} ${answer.body}`);
        await sleep(50);
      }
    },
  };
}

export interface Load {
  /** Names of the resources whose creates were answered with success. */
  acknowledged: string[];
  /** When, by `performance.now()`. */
  acknowledgedAt: number[];
  /** Statuses of other responses, each once; 0: none, because the connection broke. */
  refusals: Set<number>;
  /** Resolves with the longest time without a success, in ms. */
  stop(): Promise<number>;
}

interface LoadOptions {
  client: ApiClient;
  /** Of the API servers, which are asked in turn. */
  urls: string[];
  path: string;
  body(name: string): unknown;
}

/**
 * Creates resources one after the other. After any response but success the same request is sent again with its
 * `Idempotency-Key`, as a careful client does.
 */
export function startLoad({ client, urls, path, body }: LoadOptions): Load {
  const prefix = randomUUID().slice(0, 8);
  const acknowledged: string[] = [];
  const acknowledgedAt: number[] = [];
  const refusals = new Set<number>();
  let stopped = false;
  let longest = 0;
  let last = performance.now();

  const createOne = async (number: number) => {
    const [name, key] = [`${prefix}-${number}`, randomUUID()];
    for (let attempt = number; !stopped; attempt++) {
      const url = urls[attempt % urls.length]! + path;
      const { status } = await client.request('POST', url, { key, body: body(name) });
      longest = Math.max(longest, performance.now() - last);
      if (status === 200) {
        last = performance.now();
        acknowledged.push(name);
        acknowledgedAt.push(last);
        return;
      }
      refusals.add(status);
      await sleep(50);
    }
  };
  const running = (async () => {
    for (let number = 1; !stopped; number++) await createOne(number);
  })();
  return {
    acknowledged,
    acknowledgedAt,
    refusals,
    async stop() {
      stopped = true;
      await running;
      return longest;
    },
  };
}
