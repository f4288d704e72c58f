/**
 * Handles requests that write to a registry: checks the grant of the token and the limits of the registry.
 *
 * Invariant: a byte is counted before it is forwarded, so a registry never exceeds its limit, whatever clients send.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Layout } from '../layout.ts';
import { readableBytes, uploadsOf } from '../storage.ts';
import { type Account, createAccount, limits } from './account.ts';
import { manifestFault } from './error-causes.ts';
import type { Forward } from './forward.ts';
import type { Grant } from './grants.ts';
import type { Writer } from './open-uploads.ts';
import { Refusal } from './refusal.ts';
import type { Repairs } from './repairs.ts';
import type { Target } from './target.ts';

interface WritesDeps {
  layout: Layout;
  forward: Forward;
  repairFor: Repairs;
  grantOf(authorization: string | undefined, name: string): Promise<Grant | null>;
  /** Seconds until abandoned uploads are removed, for the message. */
  patience: number;
  /** Whether gates of other hosts serve the same storage. */
  isShared: boolean;
  isDiskFull(): boolean;
}

/** A request that may write, and the account that it counts against. */
interface Push {
  request: IncomingMessage;
  response: ServerResponse;
  target: Target;
  account: Account;
}

/** Of a manifest: the size of those of almost all images. */
const keptBytes = 64 * 1024;
/** The limit of distribution, which reports it as 400. */
const manifestBytes = 4 * 1024 ** 2;
/** How long a manifest may take to arrive. */
const manifestMs = 60_000;
/** Bytes of a body between two checks for a closed registry or a full disk. */
const checkBytes = 1024 ** 2;
const gib = 1024 ** 3;

/** `accounts`: by prefix, of the registries in use. */
export function createWrites(deps: WritesDeps) {
  const { layout, forward, grantOf } = deps;
  const accounts = new Map<string, Account>();

  const accountOf = (prefix: string): Account => {
    const account = accounts.get(prefix) ?? createAccount(layout, prefix, limits, deps.isShared);
    accounts.set(prefix, account);
    return account;
  };

  return {
    accounts,
    accountOf,

    /** Resolves once the response has been sent. @throws Refusal */
    async handle(request: IncomingMessage, response: ServerResponse, target: Target): Promise<void> {
      const method = request.method!;
      const { url, prefix, kind, name } = target;
      const grant = await grantOf(request.headers.authorization, name);
      if (!grant?.mayPush) {
        // Without a body, distribution writes nothing and responds with its challenge.
        const without = { body: true, credentials: !grant };
        return forward(request, response, { method, url, without });
      }
      refuseClosed(deps, target);
      const account = accountOf(prefix);
      await account.ready(grant);
      const push = { request, response, target, account };
      if (kind === 'upload') return sendUpload(deps, push);
      await requireBelowLimits(account, kind === 'uploads', deps.patience);
      if (kind === 'manifest') await sendManifest(deps, push);
      else await startUpload(deps, push).finally(() => account.releasePlace());
    },
  };
}

async function startUpload(deps: WritesDeps, push: Push): Promise<void> {
  const { forward } = deps;
  const { request, response, target, account } = push;
  const { url, bytes } = await mountOf(forward, request, target);
  await admit(deps, push, null, bytes);
  let mayBeMounted = true;
  try {
    await forward(request, response, {
      ...{ method: request.method!, url, without: { body: true }, repair: deps.repairFor(target) },
      onAnswer(answer) {
        const id = answer.headers['docker-upload-uuid'];
        if (answer.statusCode === 202 && typeof id === 'string') account.open(id, target.repository);
        mayBeMounted = mayHaveStored(answer);
      },
    });
  } finally {
    account.settle(bytes, mayBeMounted ? 1 : null);
  }
}

/**
 * What to forward for the start of an upload, and the bytes that the registry gets from another one, which no request body
 * contains. A blob of unknown size is not mounted: the client uploads it instead.
 */
async function mountOf(
  forward: Forward,
  request: IncomingMessage,
  { url, mount }: Target,
): Promise<{ url: string; bytes: number }> {
  if (mount === null) return { url, bytes: 0 };
  // Conditions and ranges would change the response.
  const answer = await forward.head(request, mount, (name) => /^(authorization|host)$/.test(name)).catch(() => null);
  if (answer?.statusCode === 200) return { url, bytes: Number(answer.headers['content-length']) };
  // Distribution refuses the mount, too. The client must not learn whether the blob exists.
  if (answer?.statusCode === 401 || answer?.statusCode === 403) return { url, bytes: 0 };
  return { url: url.replace(/\?.*/, ''), bytes: 0 };
}

/** Without a response, too, distribution may have stored what it was sent: bytes stay counted until the next measurement. */
const mayHaveStored = ({ statusCode }: IncomingMessage) => statusCode === 201 || statusCode! >= 500;

/** Forwards a part of an upload, or its completion or cancellation. */
async function sendUpload(deps: WritesDeps, push: Push): Promise<void> {
  const { layout, forward } = deps;
  const { request, response, target, account } = push;
  const { url, prefix, repository, reference: id } = target;
  const controller = new AbortController();
  const removed = () =>
    new Refusal(404, 'BLOB_UPLOAD_UNKNOWN', 'the upload was cancelled or has expired; start it again');
  const writer: Writer = { ended: false, abort: () => controller.abort(removed()) };
  const folder = uploadFolder(layout, prefix, repository, id);
  const { writers } = account.open(id, repository);
  writers.add(writer);
  let unchecked = 0;
  try {
    await requireInOrder(request.headers['content-range'], folder);
    await admit(deps, push, id, 0);
    await forward(request, response, {
      ...{ method: request.method!, url, signal: controller.signal, repair: deps.repairFor(target) },
      // Distribution refuses types such as that of a form, which curl sends, or reads the body as a form.
      without: { type: true },
      admit(bytes) {
        unchecked += bytes;
        let mustRefuse = false;
        if (unchecked >= checkBytes) {
          unchecked = 0;
          mustRefuse = isClosed(deps, target) || deps.isDiskFull();
        }
        // Synchronous when the bytes fit: a promise pauses the body.
        if (!mustRefuse && account.takeNow(id, repository, bytes)) return null;
        return admit(deps, push, id, bytes);
      },
      onSent: () => (writer.ended = true),
      onAnswer: ({ statusCode }) => void (statusCode === 201 && account.finish(id)),
    });
  } catch (error) {
    // A client cannot use a partial upload, which would count against its limit.
    if (error instanceof Refusal && error.status === 403) {
      await removeUpload(folder).then(
        () => account.close(id),
        // It stays counted until the worker removes it as abandoned.
        () => {},
      );
    }
    throw error;
  } finally {
    writers.delete(writer);
  }
}

/**
 * Refuses a chunk that is out of order, as the OCI specification requires. Distribution 2.8 ignores Content-Range and appends each
 * chunk, so that the client learns from the digest at the end that it must start again.
 * @throws Refusal if a chunk with this Content-Range does not begin where the upload in the folder ends
 */
async function requireInOrder(range: string | undefined, folder: string): Promise<void> {
  // Distribution accepts other forms, which have no meaning in the specification.
  const first = /^(\d+)-\d+$/.exec(range ?? '')?.[1];
  if (first === undefined) return;
  const stored = await readableBytes(join(folder, 'data'));
  if (stored === null || Number(first) === stored) return;
  throw new Refusal(
    416,
    'RANGE_INVALID',
    `the chunk begins at byte ${first}, and the upload has ${stored} bytes; get its location for the next chunk`,
  );
}

async function sendManifest(deps: WritesDeps, push: Push): Promise<void> {
  const { request, response, target, account } = push;
  await account.startManifest();
  let taken = 0;
  let mayBeStored = false;
  const controller = new AbortController();
  const late = new Refusal(503, 'UNAVAILABLE', `the manifest did not arrive within ${manifestMs / 1000} s`, 1);
  const timer = setTimeout(() => controller.abort(late), manifestMs);
  try {
    await admit(deps, push, null, 0);
    await deps.forward(request, response, {
      ...{ method: request.method!, url: target.url, signal: controller.signal, keeps: keptBytes },
      repair: deps.repairFor(target),
      async admit(bytes) {
        if (taken + bytes > manifestBytes) {
          mayBeStored = false;
          throw new Refusal(413, 'MANIFEST_INVALID', `the manifest has more than ${manifestBytes / 1024 ** 2} MiB`);
        }
        await admit(deps, push, null, bytes);
        taken += bytes;
        mayBeStored = true;
      },
      async onAnswer(answer) {
        mayBeStored = mayHaveStored(answer);
        const fault = answer.statusCode! >= 500 ? await manifestFault(answer) : null;
        if (fault !== null) throw new Refusal(400, 'MANIFEST_INVALID', `manifest invalid: ${fault}`);
      },
    });
  } finally {
    clearTimeout(timer);
    account.endManifest();
    account.settle(taken, mayBeStored ? 2 : null);
  }
}

/** Counts bytes of an upload, or of a manifest (null). @throws Refusal if they exceed the limit */
async function admit(deps: WritesDeps, { target, account }: Push, upload: string | null, bytes: number): Promise<void> {
  refuseClosed(deps, target);
  if (!(await account.take(upload, target.repository, bytes))) throw fullRefusal(account);
}

/** The folder where distribution keeps an unfinished upload. */
export function uploadFolder(layout: Layout, prefix: string, repository: string, id: string): string {
  return join(uploadsOf({ name: repository, folder: layout.repository(prefix, repository) }), id);
}

const isClosed = ({ layout }: WritesDeps, { prefix }: Target) => existsSync(layout.closed(prefix));

/** @throws Refusal if the registry is closed or the disk is full */
function refuseClosed(deps: WritesDeps, target: Target): void {
  if (isClosed(deps, target)) throw new Refusal(404, 'NAME_UNKNOWN', 'the registry was deleted');
  if (deps.isDiskFull()) {
    const message = `host ${hostname()} has less free space than its reserve; the operator must add space`;
    throw new Refusal(507, 'DENIED', message);
  }
}

/** @throws Refusal if the registry has too many uploads or objects */
async function requireBelowLimits(account: Account, opens: boolean, patience: number): Promise<void> {
  const reason = await account.limitReached(opens);
  if (reason === 'uploads') {
    throw new Refusal(
      429,
      'TOOMANYREQUESTS',
      `the registry has ${limits.uploads} unfinished uploads; finish or cancel some, or wait: ` +
        `uploads are removed ${patience} s after their last byte`,
      Math.min(60, patience),
    );
  }
  if (reason === 'objects') {
    throw new Refusal(
      403,
      'DENIED',
      `the registry has ${limits.objects} layers, manifests and tags; delete some images`,
    );
  }
}

function fullRefusal(account: Account): Refusal {
  return new Refusal(
    403,
    'DENIED',
    `the registry is full: it holds ${(account.used() / gib).toFixed(2)} GiB with unfinished uploads, and its ` +
      `storage_limit is ${account.limit() / gib} GiB; resize it, or delete images, whose space is freed by garbage ` +
      'collection, then push again',
  );
}

/** Distribution may still write to the folder: then it is not empty when it is removed. */
function removeUpload(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
}
