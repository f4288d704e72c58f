/**
 * The gate: a separate process between clients and distribution. Like distribution, it survives a crash of the worker.
 * It parses names strictly and limits storage, connections and uploads, which distribution does not.
 *
 * Usage: main.ts <configuration file>
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { readFile } from 'node:fs/promises';
import { poll } from '../../../platform/poll.ts';
import { inTurn } from '../../../platform/requests-in-turn.ts';
import { hasUnknownCoding, onlyChunked } from '../../../platform/transfer-coding.ts';
import { isDigest } from '../../registry.ts';
import { type Layout, layoutIn } from '../layout.ts';
import { sendBlob } from './blob.ts';
import { limitConnections } from './connections.ts';
import { createForward } from './forward.ts';
import { createGrants, type Issuer } from './grants.ts';
import { refuse, Refusal } from './refusal.ts';
import { createRepairs } from './repairs.ts';
import { createTagLists } from './tags.ts';
import { hasInvalidDigest, type Target, targetOf } from './target.ts';
import { checkUploads, createReport, isDiskFull } from './watch.ts';
import { acceptCertificates, readTls } from './tls.ts';
import { createWrites } from './writes.ts';

export interface GateConfiguration extends Issuer {
  /** The folder of the registries. */
  root: string;
  /** The folder of files that do not survive a reboot. */
  runtime: string;
  /** The account to change to once the gate listens; null: none. */
  account: { uid: number; gid: number } | null;
  /** Undefined: all addresses. */
  host: string | undefined;
  port: number;
  /** The PEM file of the certificate and its key, and the socket for later ones, in `root`; null: plain HTTP. */
  tls: { file: string; socket: string } | null;
  /** Seconds until unreferenced data and abandoned uploads are removed. */
  patience: number;
  /** Percent of the disk that pushes must not use. */
  diskReserve: number;
  /** The name of this host, if gates of other hosts serve the same storage; null: none does. */
  replica: string | null;
}

const silentMs = 20_000;
/** How long a request or its response may make no progress. */
const stalledMs = 300_000;
/** As many as the API accepts. Clients of registries pipeline none. */
const pipelinedRequests = 16;
const readMethods = new Set(['GET', 'HEAD']);
const writeMethods: Partial<Record<Target['kind'], string[]>> = {
  manifest: ['PUT', 'DELETE'],
  blob: ['DELETE'],
  uploads: ['POST'],
  upload: ['PATCH', 'PUT', 'DELETE'],
};

function start(configuration: GateConfiguration): void {
  const { root, runtime, account, host, port, tls, replica } = configuration;
  // The path of a socket is limited to about 100 characters, and the path of a data directory may be longer.
  process.chdir(root);
  const layout = layoutIn('.', { runtime, replica });
  const forward = createForward(layout.socket);
  const repairFor = createRepairs(layout);
  const sendTags = createTagLists({ layout, forward });
  let full = false;
  const writes = createWrites({
    ...{ layout, forward, repairFor, patience: configuration.patience, isShared: replica !== null },
    grantOf: createGrants(configuration),
    isDiskFull: () => full,
  });

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    if (hasUnknownCoding(request)) throw new Refusal(501, 'UNSUPPORTED', `Transfer-Encoding ${onlyChunked}`);
    const { method = '', url = '' } = request;
    const target = targetOf(url);
    if (!target) throw pathRefusal(method, url);
    if (method === 'GET' && target.kind === 'blob' && (await sendBlob(request, response, target, { layout, forward })))
      return;
    if (method === 'GET' && target.kind === 'tags' && (await sendTags(request, response, target))) return;
    const repair = repairFor(target);
    const forwarding = { method, url: target.url, repair };
    if (readMethods.has(method)) return forward(request, response, forwarding);
    if (!writeMethods[target.kind]?.includes(method))
      throw new Refusal(405, 'UNSUPPORTED', 'the operation is not supported');
    if (method === 'DELETE' && target.kind === 'manifest' && !isDigest(target.reference)) {
      throw new Refusal(405, 'UNSUPPORTED', 'delete the manifest by its digest, or the tag with the API of registries');
    }
    if (method === 'DELETE') return forward(request, response, forwarding);
    return writes.handle(request, response, target);
  };
  const onRequest = inTurn(pipelinedRequests, (request, response) => {
    request.setTimeout(stalledMs);
    response.on('error', () => undefined);
    handle(request, response).catch((error: unknown) => {
      if (!(error instanceof Refusal)) console.error(error);
      refuse(
        request,
        response,
        error instanceof Refusal
          ? error
          : new Refusal(500, 'UNKNOWN', 'internal error; see the log of the gate on the server'),
      );
    });
  });

  // Bodies have no time limit while they make progress.
  const times = {
    headersTimeout: silentMs,
    requestTimeout: 0,
    keepAliveTimeout: 60_000,
    connectionsCheckingInterval: 2000,
  };
  const tlsServer = tls && createTlsServer({ ...times, ...readTls(tls.file), handshakeTimeout: silentMs }, onRequest);
  if (tlsServer) acceptCertificates(tlsServer, tls.socket);
  const server = tlsServer ?? createServer(times, onRequest);
  // Applies until a request arrives: the timeout for headers does not apply to a connection that sends nothing.
  server.setTimeout(silentMs);
  limitConnections(server);
  // No listener of `clientError`: Node responds 400 to a TLS handshake, from which clients conclude that they must use HTTP.
  server.on('error', fail);
  server.listen(port, host, () => {
    if (account) dropPrivileges(account);
    openUploads(layout, writes).catch((error: unknown) => console.error(error));
  });

  const report = createReport(layout);
  const watch = async () => {
    full = await isDiskFull(layout, configuration.diskReserve);
    await report(writes);
  };
  poll(() => watch().catch(console.error), 1000, 0);
  poll(() => checkUploads(layout, writes).catch(console.error), 5000, 0);
}

/** What does not exist cannot be read; a write with a digest of another algorithm is refused by itself. */
function pathRefusal(method: string, url: string): Refusal {
  if (readMethods.has(method) || !hasInvalidDigest(url))
    return new Refusal(404, 'NAME_INVALID', 'not a path of the registry API, or not a valid name or digest');
  return new Refusal(400, 'DIGEST_INVALID', 'the digest is malformed, or its algorithm is not sha256');
}

/** Called once the port is bound and the key of the certificate is read. */
function dropPrivileges({ uid, gid }: { uid: number; gid: number }): void {
  process.setgroups!([]);
  process.setgid!(gid);
  process.setuid!(uid);
}

/** Opens the accounts of registries with unfinished uploads, as reported by the previous gate. */
async function openUploads(layout: Layout, { accountOf }: ReturnType<typeof createWrites>): Promise<void> {
  const text = await readFile(layout.uploads, 'utf8').catch(() => '{}');
  for (const prefix of Object.keys(JSON.parse(text) as object)) await accountOf(prefix).ready(null);
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
