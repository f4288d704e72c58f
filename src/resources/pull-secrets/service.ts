/**
 * The rules of pull secrets. A password goes in, is encrypted for its one row, and comes out in two places only: to the
 * registry that it is for (`verify`), and in the file that clients pull with (`dockerConfigJson`). Both are audited.
 */
import { randomUUID } from 'node:crypto';
import { requestAction } from '../../audit/audit.ts';
import type { Audit } from '../../audit/audit.ts';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { violatedConstraint } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { EncryptionError, reencryptAll } from '../../platform/encryption.ts';
import type { Keyring } from '../../platform/encryption.ts';
import { dockerConfigJson, parseRegistry } from './registry.ts';
import type { Registry } from './registry.ts';
import type {
  CreatePullSecret,
  DockerConfigJson,
  ListPullSecrets,
  PullSecret,
  PullSecretCollection,
  UpdatePullSecret,
  Verification,
} from './schema.ts';
import * as store from './store.ts';
import type { PullSecretRow, WholeRow } from './store.ts';

export interface PullSecretsDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  audit: Audit;
  keyring: Keyring;
  /** Asks the registry; main wires the driver. */
  verifyLogin: (
    registry: Pick<Registry, 'authority'>,
    credentials: { login: string; password: string },
  ) => Promise<Omit<Verification, 'verified'>>;
}

export type PullSecrets = ReturnType<typeof createPullSecrets>;

const contextOf = (id: string) => `pull-secret:${id}`;

export function createPullSecrets(deps: PullSecretsDeps) {
  const { db, clock, idempotency, keyring } = deps;

  const encrypt = (id: string, password: string) => keyring.encrypt(Buffer.from(password), contextOf(id));
  const passwordOf = ({ id, password }: WholeRow) => keyring.decrypt(password, contextOf(id)).toString();

  /** For what lets the password out: the entry in the audit log is there before anybody has it. */
  const take = (context: RequestContext, scope: Scope, name: string) =>
    deps.audit.transaction(db, requestAction(context), async (tx, act) => {
      const secret = await store.withPassword(tx, scope, name);
      if (!secret) throw notFound('pull secret', name);
      act.changes = [{ table: 'pull_secrets', id: secret.id, before: null, after: null }];
      return { ...secret, password: passwordOf(secret) };
    });

  /** A password that does not decrypt any more is no reason to refuse another one. */
  const isOther = (secret: WholeRow, password: string) => {
    try {
      return passwordOf(secret) !== password;
    } catch (error) {
      if (error instanceof EncryptionError) return true;
      throw error;
    }
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreatePullSecret): Promise<PullSecret> {
      registryOf(body.registry);
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
      const make = async (tx: Tx) => {
        if (!(await store.holdProject(tx, scope.projectId))) throw notFound('project', scope.projectId);
        await store.insert(tx, secret);
        return present(secret);
      };
      return idempotency.auditedTransaction(db, context, make).catch((error: unknown) => {
        if (violatedConstraint(error) !== 'pull_secrets_name') throw error;
        throw new ClientError('NameTaken', `there is a pull secret ${body.name} already`);
      });
    },

    async list(scope: Scope, page: ListPullSecrets): Promise<PullSecretCollection> {
      const { count, rows } = await store.list(db, scope, page);
      return { count, results: rows.map(present) };
    },

    async get(scope: Scope, name: string): Promise<PullSecret> {
      const secret = await store.view(db, scope, name);
      if (!secret) throw notFound('pull secret', name);
      return present(secret);
    },

    /** What is absent or null stays. What changes nothing writes nothing. */
    async update(context: RequestContext, scope: Scope, name: string, body: UpdatePullSecret): Promise<PullSecret> {
      if (typeof body.registry === 'string') registryOf(body.registry);
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const secret = await store.lock(tx, scope, name);
        if (!secret) throw notFound('pull secret', name);
        const { registry, login, password } = body;
        const changes = {
          ...(typeof registry === 'string' && registry !== secret.registry && { registry }),
          ...(typeof login === 'string' && login !== secret.login && { login }),
          ...(typeof password === 'string' && isOther(secret, password) && { password: encrypt(secret.id, password) }),
        };
        if (Object.keys(changes).length === 0) return present(secret);
        const changed = { ...changes, updatedAt: clock.now() };
        await store.update(tx, secret.id, changed);
        return present({ ...secret, ...changed });
      });
    },

    async delete(context: RequestContext, scope: Scope, name: string): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        if (!(await store.remove(tx, scope, name))) throw notFound('pull secret', name);
      });
    },

    /** Tries the login and password, and says what happened. */
    async verify(context: RequestContext, scope: Scope, name: string): Promise<Verification> {
      const { registry, login, password } = await take(context, scope, name);
      const verdict = await deps.verifyLogin(registryOf(registry), { login, password });
      return { verified: verdict.outcome === 'accepted', ...verdict };
    },

    /** The file that skopeo, Podman and Kubernetes take. */
    async dockerConfigJson(context: RequestContext, scope: Scope, name: string): Promise<DockerConfigJson> {
      const { registry, login, password } = await take(context, scope, name);
      return dockerConfigJson(registryOf(registry), login, password);
    },

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> =>
      reencryptAll(keyring, contextOf, {
        after: (id) => store.ciphertextsAfter(db, id),
        replace: (id, old, ciphertext) => store.replaceCiphertext(db, id, old, ciphertext),
      }),
  };
}

/** @throws ClientError 400 */
function registryOf(text: string): Registry {
  const registry = parseRegistry(text);
  if (typeof registry === 'string') throw invalidInput([{ path: 'registry', message: registry }]);
  return registry;
}

function present({ name, registry, login, updatedAt }: PullSecretRow): PullSecret {
  return { name, registry, login, updated_at: withZone(updatedAt) };
}
