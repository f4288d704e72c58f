/**
 * The rules of secrets. A secret is only a row, so every change is done with its transaction.
 *
 * Invariant: a payload is validated, encrypted for its row, and never part of a response, a task or a log line. Only
 * `pemOf` decrypts it, for the reconcilers.
 */
import { randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { type FieldError, invalidInput, requireNoErrors } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { type Keyring, reencryptAll } from '../../platform/encryption.ts';
import { createRowResource } from '../row-kit.ts';
import {
  type Collection,
  type FindUses,
  readExpiry,
  requireFound,
  requireProject,
  type ServiceDeps,
  type TaskIds,
  toCollection,
} from '../service-kit.ts';
import type { PageQuery, ProjectRegion } from '../store-kit.ts';
import type { Contents } from './contents.ts';
import { type Reading, readPayload, readTlsPayload } from './payload.ts';
import type { CreateSecret, CreateSecretV1, Secret, SecretKind } from './schema.ts';
import * as store from './store.ts';
import type { HeldSecret, NewSecret, SecretRow } from './store.ts';

interface SecretsDeps extends ServiceDeps {
  keyring: Keyring;
  /** One per kind of resource that uses secrets: they depend on secrets, so main wires it. */
  usedBy: FindUses<string>[];
}

/** A secret that a request names, the kind that it must be, and the field that names it. */
export interface SecretReference {
  id: string;
  kind: SecretKind;
  path: string;
}

export type Secrets = ReturnType<typeof createSecrets>;

const contextOf = (id: string) => `secret:${id}`;

export function createSecrets(deps: SecretsDeps) {
  const { db, clock, idempotency, keyring } = deps;
  const secrets = createRowResource(deps, 'secret', store, deps.usedBy);

  const insert = (
    context: RequestContext,
    scope: Scope,
    contents: Contents,
    given: Pick<NewSecret, 'name' | 'secretType' | 'contentType' | 'algorithm' | 'bitLength' | 'mode' | 'expiration'>,
  ): Promise<TaskIds> => {
    const id = randomUUID();
    const creatorTaskId = randomUUID();
    const { projectId, regionId } = scope;
    const { plaintext, ...facts } = contents;
    const payload = keyring.encrypt(plaintext, contextOf(id));
    const secret = { id, projectId, regionId, ...facts, ...given, payload, creatorTaskId, createdAt: clock.now() };
    return idempotency.auditedTransaction(db, context, async (tx) => {
      await requireProject(tx, projectId);
      await store.insert(tx, secret);
      return secrets.recordCreated(tx, context, scope, secret, creatorTaskId);
    });
  };

  return {
    /** For an invalid body. */
    async bodyErrors({ payload, expiration }: ValidFields<CreateSecret>): Promise<FieldError[]> {
      const now = clock.now();
      const { certificate, certificate_chain, private_key } = payload ?? {};
      const isWhole = certificate !== undefined && certificate_chain !== undefined && private_key !== undefined;
      const read = isWhole ? await readTlsPayload({ certificate, certificate_chain, private_key }, now) : null;
      return [...(read?.errors ?? []), ...readExpiry('expiration', expiration, now).errors];
    },

    /** For an invalid body. A payload whose type is invalid is only decoded, like that of a symmetric key. */
    async bodyErrorsV1(
      { secret_type = 'symmetric', payload, expiration }: ValidFields<CreateSecretV1>,
      { actor: { clientId } }: RequestContext,
    ) {
      const now = clock.now();
      const read = payload === undefined ? null : await readPayload(secret_type, payload, { now, clientId });
      return [...(read?.errors ?? []), ...readExpiry('expiration', expiration, now).errors];
    },

    async create(context: RequestContext, scope: Scope, body: CreateSecret): Promise<TaskIds> {
      const now = clock.now();
      const expiration = readExpiry('expiration', body.expiration, now);
      const contents = requireContents(await readTlsPayload(body.payload, now), expiration.errors);
      return insert(context, scope, contents, {
        name: body.name,
        secretType: 'certificate',
        contentType: 'application/octet-stream',
        algorithm: contents.algorithm,
        bitLength: contents.bitLength,
        mode: null,
        expiration: expiration.date,
      });
    },

    async createV1(context: RequestContext, scope: Scope, body: CreateSecretV1): Promise<TaskIds> {
      const now = clock.now();
      const { clientId } = context.actor;
      const expiration = readExpiry('expiration', body.expiration, now);
      const contents = requireContents(
        await readPayload(body.secret_type, body.payload, { now, clientId }),
        expiration.errors,
      );
      return insert(context, scope, contents, {
        name: body.name,
        secretType: body.secret_type,
        contentType: body.payload_content_type,
        // For information only, so the client's values take precedence.
        algorithm: body.algorithm ?? contents.algorithm,
        bitLength: body.bit_length ?? contents.bitLength,
        mode: body.mode ?? null,
        expiration: expiration.date,
      });
    },

    async list(scope: Scope, page: PageQuery): Promise<Collection<Secret>> {
      return toCollection(await store.list(db, scope, page), toResponse);
    },

    async get(scope: Scope, id: string): Promise<Secret> {
      return toResponse(requireFound(await store.find(db, scope, id), 'secret', id));
    },

    delete: secrets.delete,

    /**
     * Holds the secrets that a request names: none of them can be deleted before this transaction ends, by when the
     * user's row must refer to them. @throws ClientError 400 with every field whose secret is unknown, of the wrong kind,
     * or expired
     */
    async holdForUse(tx: Tx, scope: ProjectRegion, references: SecretReference[]): Promise<void> {
      if (references.length === 0) return;
      const held = await store.hold(tx, scope, [...new Set(references.map(({ id }) => id.toLowerCase()))]);
      const byId = new Map(held.map((secret) => [secret.id, secret]));
      const now = clock.now();
      const errors = references.flatMap(({ id, kind, path }) => {
        const message = usageError(id, byId.get(id.toLowerCase()), kind, now);
        return message ? [{ path, message }] : [];
      });
      requireNoErrors(errors);
    },

    /**
     * The PEM of the secrets that a load balancer can use, by id: certificate, issuers and private key in this order, or
     * CA certificates, or revocation lists. @throws EncryptionError
     */
    async pemOf(on: Db | Tx, ids: string[]): Promise<Map<string, string>> {
      if (ids.length === 0) return new Map();
      const rows = await store.findPayloads(on, ids);
      const usable = rows.filter((row) => row.kind !== null);
      return new Map(usable.map(({ id, payload }) => [id, keyring.decrypt(payload, contextOf(id)).toString()]));
    },

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> => reencryptAll(keyring, contextOf, store.ciphertexts(db)),
  };
}

/** @throws ClientError 400 with all errors of the payload and these */
function requireContents(reading: Reading, errors: FieldError[]): Contents {
  const all = [...reading.errors, ...errors];
  if (all.length > 0 || !reading.contents) throw invalidInput(all);
  return reading.contents;
}

const titles: Record<SecretKind, string> = {
  certificate: 'certificate with a private key',
  ca: 'CA certificate',
  crl: 'certificate revocation list',
};

function usageError(id: string, secret: HeldSecret | undefined, kind: SecretKind, now: Date): string | null {
  if (!secret) return `secret ${id} not found in this project and region`;
  if (secret.kind !== kind) return `secret ${id} (${secret.secretType}) does not contain a ${titles[kind]}`;
  const end = [secret.notAfter, secret.expiration].find((date) => date && date < now);
  return end ? `secret ${id} expired on ${withZone(end)}` : null;
}

function toResponse(secret: SecretRow): Secret {
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

/** `2020-01-01T12:00:00+00:00`: the Go client reads dates of secrets only in this form, not with `Z`. */
function withOffset(date: Date): string {
  return withZone(date).replace('Z', '+00:00');
}
