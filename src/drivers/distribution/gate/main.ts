/**
 * The gate: a process of its own between clients and distribution, which outlives a crash of the worker as distribution
 * does. Distribution has no limits for storage, connections or uploads; the gate has, and reads names strictly.
 *
 * Usage: main.ts <configuration file>
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { readFile } from 'node:fs/promises';
import { type Layout, layoutIn } from '../layout.ts';
import { sendBlob } from './blob.ts';
import { limitConnections } from './connections.ts';
import { createForward } from './forward.ts';
import { createPasses } from './passes.ts';
import { refuse, Refusal } from './refusal.ts';
import { targetOf } from './target.ts';
import { checkUploads, createReport, isDiskFull } from './watch.ts';
import { createWrites } from './writes.ts';

export interface GateConfiguration {
  /** The folder of the registries. */
  root: string;
  /** Of files that do not outlive a reboot. */
  runtime: string;
  /** What it runs as once it listens; null: as what it was started. */
  account: { uid: number; gid: number } | null;
  /** Undefined: all addresses. */
  host: string | undefined;
  port: number;
  tls: { certificate: string; key: string } | null;
  certificate: string;
  issuer: string;
  service: string;
  patience: number;
}

const silentMs = 20_000;
/** How long a request or its answer may stand still. */
const stalledMs = 300_000;
const reading = new Set(['GET', 'HEAD']);

function start(configuration: GateConfiguration): void {
  const { root, runtime, account, host, port, tls } = configuration;
  // The name of a socket has a hundred characters at most, and a data directory may be deep.
  process.chdir(root);
  const layout = layoutIn('.', runtime);
  const forward = createForward(layout.socket);
  let full = false;
  const writes = createWrites({
    ...{ layout, forward, patience: configuration.patience },
    passOf: createPasses(configuration),
    isDiskFull: () => full,
  });

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const target = targetOf(request.url ?? '');
    if (!target)
      throw new Refusal(404, 'NAME_INVALID', 'not a path of the registry API, or not a valid name or digest');
    const method = request.method ?? '';
    const { signal } = new AbortController();
    if (method === 'GET' && target.kind === 'blob' && (await sendBlob(request, response, target, { layout, forward })))
      return;
    if (reading.has(method)) return forward(request, response, { method, url: target.url, signal });
    if (!isAllowed(method, target.kind)) throw new Refusal(405, 'UNSUPPORTED', 'the operation is not supported');
    if (method === 'DELETE') return forward(request, response, { method, url: target.url, signal });
    return writes.handle(request, response, target);
  };
  const onRequest: RequestListener = (request, response) => {
    request.setTimeout(stalledMs);
    response.on('error', () => undefined);
    handle(request, response).catch((error: unknown) => {
      if (!(error instanceof Refusal)) console.error(error);
      refuse(request, response, error instanceof Refusal ? error : new Refusal(500, 'UNKNOWN', 'internal error'));
    });
  };

  // Bodies may take as long as they need, as long as they move.
  const times = {
    headersTimeout: silentMs,
    requestTimeout: 0,
    keepAliveTimeout: 60_000,
    connectionsCheckingInterval: 2000,
  };
  const server = tls
    ? createTlsServer({ ...times, ...pemOf(tls), minVersion: 'TLSv1.2', handshakeTimeout: silentMs }, onRequest)
    : createServer(times, onRequest);
  // Until a request is there. The timeout for headers does not count for a connection that sends nothing.
  server.setTimeout(silentMs);
  limitConnections(server);
  server.on('clientError', (_error, socket) => socket.destroy());
  server.on('error', fail);
  server.listen(port, host, () => {
    if (account) become(account);
    openUploads(layout, writes).catch((error: unknown) => console.error(error));
  });

  const report = createReport(layout);
  every(1000, async () => {
    full = await isDiskFull(layout);
    await report(writes);
  });
  every(5000, () => checkUploads(writes));
}

function isAllowed(method: string, kind: string): boolean {
  if (kind === 'manifest' || kind === 'upload')
    return ['PUT', 'DELETE', ...(kind === 'upload' ? ['PATCH'] : [])].includes(method);
  if (kind === 'uploads') return method === 'POST';
  return kind === 'blob' && method === 'DELETE';
}

function pemOf({ certificate, key }: { certificate: string; key: string }) {
  return { cert: readFileSync(certificate), key: readFileSync(key) };
}

/** With the port and the key of the certificate in hand, root is not needed any more. */
function become({ uid, gid }: { uid: number; gid: number }): void {
  process.setgroups!([]);
  process.setgid!(gid);
  process.setuid!(uid);
}

/** Goes on with what the gate before this one counted. */
async function openUploads(layout: Layout, { accountOf }: ReturnType<typeof createWrites>): Promise<void> {
  const text = await readFile(layout.uploads, 'utf8').catch(() => '{}');
  for (const prefix of Object.keys(JSON.parse(text) as object)) await accountOf(prefix).ready(null);
}

/** One at a time, again and again. */
function every(ms: number, work: () => Promise<void>): void {
  const run = () =>
    work()
      .catch((error: unknown) => console.error(error))
      .then(() => setTimeout(run, ms));
  void run();
}

function fail(error: unknown): never {
  console.error(error);
  process.exit(1);
}

try {
  start(JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as GateConfiguration);
} catch (error) {
  fail(error);
}
