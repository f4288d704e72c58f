/** Sends HTTP requests from a separate thread, so that their cost does not count as the server's. */
import { Agent, request as httpRequest } from 'node:http';
import { parentPort, Worker, workerData } from 'node:worker_threads';

interface Sent {
  method: string;
  port: number;
  path: string;
  headers: Record<string, string>;
  body?: string;
}

export interface Received {
  /** 0 if the connection broke. */
  status: number;
  /** Length of `errors` in the response. */
  errorCount: number;
  /** The beginning of the response. */
  text: string;
  ms: number;
}

const textKept = 20_000;
const marker = 'http-sender';

export interface Sender {
  send(request: Sent): Promise<Received>;
  stop(): Promise<unknown>;
}

export function startSender(): Sender {
  const worker = new Worker(new URL(import.meta.url), { workerData: marker });
  const waiting = new Map<number, (received: Received) => void>();
  let last = 0;
  worker.on('message', ({ id, received }: { id: number; received: Received }) => {
    waiting.get(id)!(received);
    waiting.delete(id);
  });
  return {
    send(request) {
      const id = ++last;
      const { promise, resolve } = Promise.withResolvers<Received>();
      waiting.set(id, resolve);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin
      worker.postMessage({ id, request });
      return promise;
    },
    stop: () => worker.terminate(),
  };
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

function receive({ body, ...options }: Sent): Promise<Received> {
  const startedAt = performance.now();
  const end = (status: number, text: string): Received => {
    let errorCount = 0;
    try {
      if (status >= 400) errorCount = (JSON.parse(text) as { errors?: unknown[] }).errors?.length ?? 0;
    } catch {
      // Not JSON.
    }
    return { status, errorCount, text: text.slice(0, textKept), ms: performance.now() - startedAt };
  };
  return new Promise((resolve) => {
    const bytes = body === undefined ? undefined : Buffer.from(body);
    const headers = { ...options.headers, ...(bytes && { 'content-length': String(bytes.length) }) };
    const sent = httpRequest({ ...options, host: '127.0.0.1', headers, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(end(response.statusCode!, Buffer.concat(chunks).toString())));
      response.on('error', (error) => resolve(end(0, String(error))));
    });
    sent.on('error', (error) => resolve(end(0, String(error))));
    sent.end(bytes);
  });
}

if (workerData === marker) {
  parentPort!.on('message', async ({ id, request }: { id: number; request: Sent }) => {
    const received = await receive(request);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    parentPort!.postMessage({ id, received });
  });
}
