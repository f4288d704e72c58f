/**
 * Requests that write to a registry: who may, and how much.
 *
 * Invariant: a byte is counted before it is sent on, so a registry never holds more than its limit, whatever was sent
 * with whatever token.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Layout } from '../layout.ts';
import { uploadsOf } from '../storage.ts';
import { type Account, createAccount, limits, type Writer } from './account.ts';
import type { Forward } from './forward.ts';
import { sizeOf } from './measure.ts';
import type { Pass } from './passes.ts';
import { Refusal } from './refusal.ts';
import type { Target } from './target.ts';

export interface WritesDeps {
  layout: Layout;
  forward: Forward;
  passOf(authorization: string | undefined, name: string): Promise<Pass | null>;
  /** Seconds until uploads that nobody goes on with are removed, for the message. */
  patience: number;
  isDiskFull(): boolean;
}

type Send = (request: IncomingMessage, response: ServerResponse, target: Target, account: Account) => Promise<void>;

/** How long a manifest may take to arrive. */
const manifestMs = 60_000;
/** Whether the registry was closed or the disk is full is asked once in so many bytes of a body. */
const checkBytes = 1024 ** 2;
const gib = 1024 ** 3;

export function createWrites(deps: WritesDeps) {
  const { layout, forward, passOf } = deps;
  const accounts = new Map<string, Account>();

  const accountOf = (prefix: string): Account => {
    const account = accounts.get(prefix) ?? createAccount(layout, prefix);
    accounts.set(prefix, account);
    return account;
  };

  const folderOf = (prefix: string, repository: string, id: string) =>
    join(uploadsOf({ name: repository, folder: layout.repository(prefix, repository) }), id);

  const isClosed = ({ prefix }: Target) => existsSync(layout.closed(prefix));

  /** @throws Refusal when nothing can be written at all */
  const refuseClosed = (target: Target) => {
    if (isClosed(target)) throw new Refusal(404, 'NAME_UNKNOWN', 'the registry was deleted');
    if (deps.isDiskFull()) {
      throw new Refusal(503, 'UNAVAILABLE', 'the disk of the registry host is nearly full; try again later', 60);
    }
  };

  /** @throws Refusal */
  const refuseCrowded = async (account: Account, opens: boolean) => {
    const reason = await account.crowded(opens);
    if (reason === 'uploads') {
      throw new Refusal(
        429,
        'TOOMANYREQUESTS',
        `the registry has ${limits.uploads} unfinished uploads; finish or cancel some, or wait: ` +
          `uploads are removed ${deps.patience} s after their last byte`,
        Math.min(60, deps.patience),
      );
    }
    if (reason === 'objects') {
      throw new Refusal(
        403,
        'DENIED',
        `the registry has ${limits.objects} layers, manifests and tags; delete some images`,
      );
    }
  };

  const fullRefusal = (account: Account) =>
    new Refusal(
      403,
      'DENIED',
      `the registry is full: it holds ${(account.used() / gib).toFixed(2)} GiB with unfinished uploads, and its ` +
        `storage_limit is ${account.limit() / gib} GiB; delete images or resize it, then push again`,
    );

  /** @throws Refusal when there is no room for so many bytes more */
  const admit = async (account: Account, target: Target, upload: string | null, bytes: number) => {
    refuseClosed(target);
    if (!(await account.take(upload, target.repository, bytes))) throw fullRefusal(account);
  };

  /** Sends bytes of an upload, or its end. */
  const sendUpload: Send = async (request, response, target, account) => {
    const { url, prefix, repository, reference: id } = target;
    const over = new AbortController();
    const writer: Writer = { ended: false, abort: () => over.abort() };
    const { writers } = account.open(id, repository);
    writers.add(writer);
    let unchecked = 0;
    try {
      await admit(account, target, id, 0);
      await forward(request, response, {
        ...{ method: request.method!, url, signal: over.signal },
        admit(bytes) {
          unchecked += bytes;
          let mustRefuse = false;
          if (unchecked >= checkBytes) {
            unchecked = 0;
            mustRefuse = isClosed(target) || deps.isDiskFull();
          }
          // Synchronous when the bytes fit: a promise pauses the body.
          if (!mustRefuse && account.takeNow(id, repository, bytes)) return null;
          return admit(account, target, id, bytes);
        },
        onSent: () => (writer.ended = true),
        onAnswer: ({ statusCode }) => void (statusCode === 201 && account.finish(id)),
      });
    } catch (error) {
      // What was cut off is of no use to its client, and takes up room.
      if (error instanceof Refusal && error.code === 'DENIED') {
        await rm(folderOf(prefix, repository, id), { recursive: true, force: true });
        account.close(id);
      }
      throw error;
    } finally {
      writers.delete(writer);
    }
  };

  const sendManifest: Send = async (request, response, target, account) => {
    await account.manifestBegins();
    let taken = 0;
    let isStored = false;
    try {
      await admit(account, target, null, 0);
      await forward(request, response, {
        ...{ method: request.method!, url: target.url, signal: AbortSignal.timeout(manifestMs) },
        async admit(bytes) {
          await admit(account, target, null, bytes);
          taken += bytes;
        },
        onAnswer: ({ statusCode }) => void (isStored = statusCode === 201),
      });
    } finally {
      account.manifestEnds(taken, isStored);
    }
  };

  const beginUpload: Send = async (request, response, target, account) => {
    const { url, repository, mount } = target;
    // A blob that is mounted adds what no body brings.
    const mounted = mount === null ? 0 : ((await sizeOf(join(layout.blob(mount), 'data'))) ?? 0);
    await admit(account, target, null, 0);
    await forward(request, response, {
      ...{ method: request.method!, url, signal: new AbortController().signal, without: { body: true } },
      onAnswer({ statusCode, headers }) {
        const id = headers['docker-upload-uuid'];
        if (statusCode === 202 && typeof id === 'string') account.open(id, repository);
        if (statusCode === 201) account.add({ bytes: mounted, objects: 1 });
      },
    });
  };

  return {
    accounts,
    accountOf,
    folderOf,

    /** Resolves when the request has been answered. @throws Refusal */
    async handle(request: IncomingMessage, response: ServerResponse, target: Target): Promise<void> {
      const method = request.method!;
      const { url, prefix, kind, name } = target;
      const pass = await passOf(request.headers.authorization, name);
      if (!pass?.mayPush) {
        // Distribution says what the client has to show, and gets nothing to write.
        const without = { body: true, credentials: !pass };
        return forward(request, response, { method, url, without, signal: new AbortController().signal });
      }
      refuseClosed(target);
      const account = accountOf(prefix);
      await account.ready(pass);
      if (kind === 'upload') return sendUpload(request, response, target, account);
      await refuseCrowded(account, kind === 'uploads');
      if (kind === 'manifest') await sendManifest(request, response, target, account);
      else await beginUpload(request, response, target, account).finally(() => account.opened());
    },
  };
}
