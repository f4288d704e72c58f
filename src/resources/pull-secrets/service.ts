/**
 * The rules of pull secrets.
 *
 * Invariant: a password is encrypted for its row, and leaves in two ways only, both audited: to its registry (`verify`),
 * and in the file that clients pull with (`dockerConfigJson`).
 */
import { randomUUID } from 'node:crypto';
import { type Audit, requestAction } from '../../audit/audit.ts';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, type FieldError, requireNoErrors } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import { EncryptionError, type Keyring, reencryptAll } from '../../platform/encryption.ts';
import {
  changedColumns,
  changesUnderLock,
  type Collection,
  isEmpty,
  orNameTaken,
  requireFound,
  requireProject,
  type ServiceDeps,
  toCollection,
} from '../service-kit.ts';
import type { PageQuery } from '../store-kit.ts';
import { dockerConfigJson, errorOfLogin, hasCredentials, parseRegistry, type Registry } from './registry.ts';
import type { CreatePullSecret, DockerConfigJson, PullSecret, UpdatePullSecret, Verification } from './schema.ts';
import * as store from './store.ts';
import type { PullSecretRow, WholeRow } from './store.ts';

interface PullSecretsDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  audit: Audit;
  keyring: Keyring;
  /** Tries a login at the registry; main wires the driver. */
  verifyLogin: (
    registry: Pick<Registry, 'authority'>,
    credentials: { login: string; password: string },
  ) => Promise<Omit<Verification, 'verified'>>;
}

export type PullSecrets = ReturnType<typeof createPullSecrets>;

const controlCharacter = /\p{Cc}/u;

const contextOf = (id: string) => `pull-secret:${id}`;

export function createPullSecrets(deps: PullSecretsDeps) {
  const { db, clock, idempotency, keyring } = deps;
  const change = changesUnderLock(deps, 'pull secret', store.lock);

  const encrypt = (id: string, password: string) => keyring.encrypt(Buffer.from(password), contextOf(id));
  const passwordOf = ({ id, password }: WholeRow) => keyring.decrypt(password, contextOf(id)).toString();

  /** The entry in the audit log is committed before the password is returned. */
  const disclose = (context: RequestContext, scope: Scope, name: string) =>
    deps.audit.transaction(db, requestAction(context), async (tx, act) => {
      const secret = requireFound(await store.find(tx, scope, name), 'pull secret', name);
      act.changes = [{ table: 'pull_secrets', id: secret.id, before: null, after: null }];
      return { ...secret, password: passwordOf(secret) };
    });

  /** True as well when the stored password cannot be decrypted: a new one must be accepted. */
  const differs = (secret: WholeRow, password: string) => {
    try {
      return passwordOf(secret) !== password;
    } catch (error) {
      if (error instanceof EncryptionError) return true;
      throw error;
    }
  };

  return {
    /** For an invalid body. */
    bodyErrors: errorsOfPullSecret,

    async create(context: RequestContext, scope: Scope, body: CreatePullSecret): Promise<PullSecret> {
      requireNoErrors(errorsOfPullSecret(body));
      const id = randomUUID();
      const secret = {
        id,
        projectId: scope.projectId,
        regionId: scope.regionId,
        name: body.name,
        registry: body.registry,
        login: body.login,
        password: encrypt(id, body.password),
        updatedAt: clock.now(),
      };
      const insert = async (tx: Tx) => {
        await requireProject(tx, scope.projectId);
        await store.insert(tx, secret);
        await store.limitOfProject(tx, scope.projectId);
        return toResponse(secret);
      };
      return orNameTaken(
        idempotency.auditedTransaction(db, context, insert),
        'pull_secrets_name',
        `the pull secret ${body.name} already exists`,
      );
    },

    async list(scope: Scope, page: PageQuery): Promise<Collection<PullSecret>> {
      return toCollection(await store.list(db, scope, page), toResponse);
    },

    async get(scope: Scope, name: string): Promise<PullSecret> {
      return toResponse(requireFound(await store.find(db, scope, name), 'pull secret', name));
    },

    /** An omitted or null field keeps its value. */
    async update(context: RequestContext, scope: Scope, name: string, body: UpdatePullSecret): Promise<PullSecret> {
      requireNoErrors(errorsOfPullSecret(body));
      return change(context, scope, name, async (tx, secret) => {
        const { registry, login, password } = body;
        const changes = changedColumns(secret, {
          registry: registry ?? undefined,
          login: login ?? undefined,
          // Two ciphertexts of one password differ.
          password:
            typeof password === 'string' && differs(secret, password) ? encrypt(secret.id, password) : undefined,
        });
        if (isEmpty(changes)) return toResponse(secret);
        const changed = { ...changes, updatedAt: clock.now() };
        await store.update(tx, secret.id, changed);
        return toResponse({ ...secret, ...changed });
      });
    },

    delete: (context: RequestContext, scope: Scope, name: string): Promise<void> =>
      change(context, scope, name, (tx, { id }) => store.remove(tx, id)),

    /** Tries the login and password at the registry. */
    async verify(context: RequestContext, scope: Scope, name: string): Promise<Verification> {
      const { registry, login, password } = await disclose(context, scope, name);
      const usable = usableRegistry(registry, login);
      if (typeof usable === 'string') return { verified: false, outcome: 'unusable', message: usable };
      const verdict = await deps.verifyLogin(usable, { login, password });
      return { verified: verdict.outcome === 'accepted', ...verdict };
    },

    /** The credentials file of skopeo, Podman and Kubernetes. */
    async dockerConfigJson(context: RequestContext, scope: Scope, name: string): Promise<DockerConfigJson> {
      const { registry, login, password } = await disclose(context, scope, name);
      const usable = usableRegistry(registry, login);
      if (typeof usable === 'string') throw new ClientError('Conflict', `pull secret ${name} is unusable: ${usable}`);
      return dockerConfigJson(usable, login, password);
    },

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> => reencryptAll(keyring, contextOf, store.ciphertexts(db)),
  };
}

/** What the schema cannot check: patterns of schemas are for shorter text. */
function errorsOfPullSecret({ registry, password }: UpdatePullSecret): FieldError[] {
  const errors: FieldError[] = [];
  if (registry && hasCredentials(registry)) {
    errors.push({ path: 'registry', message: 'must not contain credentials; use the fields login and password' });
  }
  if (password && controlCharacter.test(password)) {
    errors.push({ path: 'password', message: 'must not contain control characters, such as line breaks' });
  }
  return errors;
}

/** The parsed registry, or why no client can use the registry or the login: any text is stored. */
function usableRegistry(text: string, login: string): Registry | string {
  const registry = parseRegistry(text);
  return typeof registry === 'string' ? `registry ${registry}` : (errorOfLogin(login) ?? registry);
}

function toResponse({ name, registry, login, updatedAt }: PullSecretRow): PullSecret {
  return { name, registry, login, updated_at: withZone(updatedAt) };
}
