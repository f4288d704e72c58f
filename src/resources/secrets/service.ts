/**
 * The rules of secrets. A secret lives in its row alone, and its payload only goes in: it is judged, encrypted for this
 * one row, and never part of an answer, a task or a log line. The only way out is `pemOf`, for the reconcilers.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { inUse, invalidInput, notFound } from '../../errors/catalogue.ts';
import type { FieldError, Uses } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { postgresCode } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { reencryptAll } from '../../platform/encryption.ts';
import type { Keyring } from '../../platform/encryption.ts';
import type { Quota } from '../../quota/quota.ts';
import type { ResourceKey, Tasks } from '../../tasks/tasks.ts';
import type { Contents } from './contents.ts';
import { readPayload, readTlsPayload } from './payload.ts';
import type { Reading } from './payload.ts';
import type { CreateSecret, CreateSecretV1, ListSecrets, Secret, SecretCollection, SecretKind } from './schema.ts';
import * as store from './store.ts';
import type { HeldSecret, NewSecret, SecretRow, Where } from './store.ts';

/** What of one kind of resource uses a secret. */
export type UsesOfSecret = (tx: Tx, secretId: string) => Promise<Uses[]>;

export interface SecretsDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
  keyring: Keyring;
  /** One a kind of resource that uses secrets: they stand above them, so main wires it. */
  usedBy: UsesOfSecret[];
}

/** A secret that a body names, what it is to be used as, and the field that names it. */
export interface WantedSecret {
  id: string;
  kind: SecretKind;
  path: string;
}

export type Secrets = ReturnType<typeof createSecrets>;
type TaskIds = { tasks: string[] };

const foreignKeyViolation = '23503';
const contextOf = (id: string) => `secret:${id}`;

export function createSecrets(deps: SecretsDeps) {
  const { db, clock, tasks, quota, idempotency, keyring } = deps;

  const insert = (
    context: RequestContext,
    scope: Scope,
    contents: Contents,
    given: Pick<NewSecret, 'name' | 'secretType' | 'contentType' | 'algorithm' | 'bitLength' | 'mode' | 'expiration'>,
  ): Promise<TaskIds> => {
    const id = randomUUID();
    const taskId = randomUUID();
    const { plaintext, ...shown } = contents;
    const secret = {
      id,
      projectId: scope.projectId,
      regionId: scope.regionId,
      ...shown,
      ...given,
      payload: keyring.encrypt(plaintext, contextOf(id)),
      creatorTaskId: taskId,
      createdAt: clock.now(),
    };
    return idempotency.auditedTransaction(db, context, async (tx) => {
      if (!(await store.holdProject(tx, scope.projectId))) throw notFound('project', scope.projectId);
      await store.insert(tx, secret);
      await tasks.recordFinished(tx, context, {
        id: taskId,
        type: 'create_secret',
        key: keyOf(secret),
        projectId: scope.projectId,
        generation: 1,
        createdResources: { secrets: [id] },
      });
      await quota.reserve(tx, scope, { secret_count: 1 });
      return { tasks: [taskId] };
    });
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreateSecret): Promise<TaskIds> {
      const now = clock.now();
      const expiration = expirationOf(body.expiration, now);
      const contents = soundOrThrow(await readTlsPayload(body.payload, now), expiration.faults);
      return insert(context, scope, contents, {
        name: body.name,
        secretType: 'certificate',
        contentType: 'application/octet-stream',
        expiration: expiration.date,
      });
    },

    async createV1(context: RequestContext, scope: Scope, body: CreateSecretV1): Promise<TaskIds> {
      const now = clock.now();
      const expiration = expirationOf(body.expiration, now);
      const contents = soundOrThrow(await readPayload(body.secret_type, body.payload, now), expiration.faults);
      return insert(context, scope, contents, {
        name: body.name,
        secretType: body.secret_type,
        contentType: body.payload_content_type,
        // For information: what the customer says of it stands.
        algorithm: body.algorithm ?? contents.algorithm,
        bitLength: body.bit_length ?? contents.bitLength,
        mode: body.mode ?? null,
        expiration: expiration.date,
      });
    },

    async list(scope: Scope, filter: ListSecrets): Promise<SecretCollection> {
      const { count, rows } = await store.list(db, scope, filter);
      return { count, results: rows.map(present) };
    },

    async get(scope: Scope, id: string): Promise<Secret> {
      const secret = await store.view(db, scope, id);
      if (!secret) throw notFound('secret', id);
      return present(secret);
    },

    async delete(context: RequestContext, scope: Scope, id: string): Promise<TaskIds> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const secret = await store.lock(tx, scope, id);
        if (!secret) throw notFound('secret', id);
        const uses: Uses[] = [];
        for (const usesOfSecret of deps.usedBy) uses.push(...(await usesOfSecret(tx, secret.id)));
        if (uses.length > 0) throw inUse('secret', id, uses);
        await store.remove(tx, secret.id).catch((error: unknown) => {
          throw postgresCode(error) === foreignKeyViolation ? inUse('secret', id, []) : error;
        });
        const done = { type: 'delete_secret', key: keyOf(secret), projectId: secret.projectId, generation: 1 };
        const taskId = await tasks.recordFinished(tx, context, done);
        await quota.release(tx, scope, { secret_count: 1 });
        return { tasks: [taskId] };
      });
    },

    /**
     * Holds the secrets that a body names: none of them is deleted before this transaction ends, by when its row must
     * say that it uses them. @throws ClientError 400 naming every field whose secret is unknown, of another kind, or
     * expired
     */
    async holdForUse(tx: Tx, where: Where, wanted: WantedSecret[]): Promise<void> {
      if (wanted.length === 0) return;
      const held = await store.hold(tx, where, [...new Set(wanted.map(({ id }) => id.toLowerCase()))]);
      const byId = new Map(held.map((secret) => [secret.id, secret]));
      const now = clock.now();
      const faults = wanted.flatMap(({ id, kind, path }) => {
        const message = whyUnusable(id, byId.get(id.toLowerCase()), kind, now);
        return message ? [{ path, message }] : [];
      });
      if (faults.length > 0) throw invalidInput(faults);
    },

    /**
     * The PEM of those of the ids that are of use to a load balancer, by id: certificate, issuers and private key in
     * this order, or CA certificates, or revocation lists. @throws EncryptionError
     */
    async pemOf(on: Db | Tx, ids: string[]): Promise<Map<string, string>> {
      if (ids.length === 0) return new Map();
      const rows = await store.payloads(on, ids);
      const usable = rows.filter((row) => row.kind !== null);
      return new Map(usable.map(({ id, payload }) => [id, keyring.decrypt(payload, contextOf(id)).toString()]));
    },

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> =>
      reencryptAll(keyring, contextOf, {
        after: async (id) =>
          (await store.payloadsAfter(db, id)).map(({ id, payload }) => ({ id, ciphertext: payload })),
        replace: (id, _old, ciphertext) => store.replacePayload(db, id, ciphertext),
      }),
  };
}

function keyOf(secret: Pick<SecretRow, 'id' | 'regionId'>): ResourceKey {
  return { resource: 'secret', id: secret.id, regionId: secret.regionId };
}

/** @throws ClientError 400 with all faults of the payload and these */
function soundOrThrow(read: Reading, faults: FieldError[]): Contents {
  const all = [...read.faults, ...faults];
  if (all.length > 0 || !read.contents) throw invalidInput(all);
  return read.contents;
}

/** A time without a zone is UTC: the Go client writes it so. */
function expirationOf(text: string | null | undefined, now: Date): { date: Date | null; faults: FieldError[] } {
  if (text === null || text === undefined) return { date: null, faults: [] };
  const fault = (message: string) => ({ date: null, faults: [{ path: 'expiration', message }] });
  const [day, time = ''] = text.toUpperCase().split(/[T\s]/);
  const zone = /(Z|[+-]\d\d(:?\d\d)?)$/.exec(time)?.[0] ?? '';
  const date = new Date(`${day}T${time}${zone === '' ? 'Z' : zone.length === 3 ? ':00' : ''}`);
  // A leap second, or a year that an offset moves out of what has four digits.
  if (!(date.getUTCFullYear() <= 9999)) return fault('must be a date and time such as 2026-11-20T09:52:52Z');
  return date > now ? { date, faults: [] } : fault('is in the past');
}

const holdsNo: Record<SecretKind, string> = {
  certificate: 'certificate with a private key',
  ca: 'CA certificates',
  crl: 'certificate revocation list',
};

function whyUnusable(id: string, secret: HeldSecret | undefined, kind: SecretKind, now: Date): string | null {
  if (!secret) return `secret ${id} was not found in this project and region`;
  if (secret.kind !== kind) return `secret ${id} (${secret.secretType}) holds no ${holdsNo[kind]}`;
  const end = [secret.notAfter, secret.expiration].find((date) => date && date < now);
  return end ? `secret ${id} expired on ${withZone(end)}` : null;
}

function present(secret: SecretRow): Secret {
  return {
    id: secret.id,
    name: secret.name,
    secret_type: secret.secretType,
    status: 'ACTIVE',
    algorithm: secret.algorithm,
    bit_length: secret.bitLength,
    mode: secret.mode,
    content_types: { default: secret.contentType },
    created: withOffset(secret.createdAt),
    expiration: secret.expiration && withOffset(secret.expiration),
  };
}

/** `2020-01-01T12:00:00+00:00`: the Go client reads dates of secrets in this form only, `Z` not among it. */
function withOffset(date: Date): string {
  return withZone(date).replace('Z', '+00:00');
}
