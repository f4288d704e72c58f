/**
 * Tokens: `<id>$<secret>`. Only a SHA-256 of the secret is stored (a secret is 256 random bits, so a slow hash would
 * add nothing), and it is compared in constant time.
 */
import { randomBytes } from 'node:crypto';
import { commandAction } from '../../audit/audit.ts';
import type { Audit } from '../../audit/audit.ts';
import type { Actor, Role } from '../../authz/actor.ts';
import type { Clock } from '../../platform/clock.ts';
import { equalInConstantTime, randomSecret, sha256 } from '../../platform/crypto.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { ReferenceCaches } from '../../platform/reference-cache.ts';
import * as store from './store.ts';
import type { TokenRow, WholeToken } from './store.ts';

export interface NewToken {
  clientId: number;
  name: string;
  role: Role;
  projectIds: number[] | null;
  expiresAt: Date | null;
}

/** What the list of tokens calls the one of the environment. */
const fixedName = 'CLOUDYARD_BOOTSTRAP_TOKEN';

/** About 200 bytes each. */
const maxRecognized = 100_000;

export type Tokens = ReturnType<typeof createTokens>;

export function createTokens(deps: { db: Db; clock: Clock; caches: ReferenceCaches; audit: Audit }) {
  const { db, clock, caches, audit } = deps;
  const factsOf = caches.cached((keyId: string) => store.facts(db, keyId));
  /** Hashes of the secrets that were valid last, by token. */
  const recognized = new Map<string, Buffer>();

  const insertToken = async (tx: Tx, token: NewToken): Promise<{ id: number; text: string }> => {
    const keyId = randomBytes(6).toString('hex');
    const secret = randomSecret();
    await caches.changed(tx);
    const id = await store.insert(tx, { ...token, keyId, secretHash: sha256(secret), createdAt: clock.now() });
    return { id, text: `${keyId}$${secret}` };
  };

  return {
    /** Who the token belongs to; null when it is unknown, wrong, expired or revoked. No database on the hot path. */
    async authenticate(token: string): Promise<Actor | null> {
      const { keyId, secret } = split(token);
      const facts = await factsOf(keyId);
      if (!facts || !equalInConstantTime(facts.secret_hash, sha256(secret))) return null;
      if (facts.revoked_at || (facts.expires_at && facts.expires_at <= clock.now())) {
        recognized.delete(keyId);
        return null;
      }
      if (recognized.size < maxRecognized) recognized.set(keyId, facts.secret_hash);
      return {
        tokenId: facts.id,
        clientId: facts.client_id,
        weight: facts.weight,
        role: facts.role,
        projectIds: facts.project_ids,
        operator: facts.operator,
      };
    },

    /** Whether the token was valid when it was last used on this server. Costs no query; it may be revoked since. */
    recognizes(token: string): boolean {
      const { keyId, secret } = split(token);
      const hash = recognized.get(keyId);
      return hash !== undefined && equalInConstantTime(hash, sha256(secret));
    },

    /** Makes a token. The text is returned here and never again. */
    async create(token: NewToken): Promise<{ id: number; text: string }> {
      return audit.transaction(db, commandAction('createToken', token.clientId), (tx) => insertToken(tx, token));
    },

    /** The admin token of a first start; null when the client has one that was ever shown to somebody. */
    async createFirst(clientId: number): Promise<string | null> {
      return audit.transaction(db, commandAction('createFirstToken', clientId), async (tx) => {
        await store.lockClient(tx, clientId);
        if (await store.hasAdmin(tx, clientId)) return null;
        const first = { clientId, name: 'first start', role: 'admin' as const, projectIds: null, expiresAt: null };
        return (await insertToken(tx, first)).text;
      });
    },

    list: (): Promise<TokenRow[]> => store.list(db),

    /** Returns whether there was such a token. Every server refuses it within a second. */
    async revoke(idOrKey: string): Promise<boolean> {
      return audit.transaction(db, commandAction('revokeToken'), async (tx, act) => {
        await caches.changed(tx);
        const revoked = await store.revoke(tx, idOrKey, clock.now());
        act.clientId = revoked?.clientId ?? null;
        return revoked !== undefined;
      });
    },

    /** Puts the operator's fixed token in place, and ends the one that an earlier start had fixed. */
    async fix(text: string, clientId: number): Promise<void> {
      const { keyId, secret } = split(text);
      const fixed = await store.valid(db, fixedName);
      if (fixed.length === 1 && isSame(fixed[0]!, { keyId, clientId, secretHash: sha256(secret) })) return;
      await audit.transaction(db, commandAction('fixToken', clientId), async (tx) => {
        await caches.changed(tx);
        await store.revokeNamed(tx, fixedName, clock.now());
        await store.replace(tx, {
          keyId,
          secretHash: sha256(secret),
          clientId,
          name: fixedName,
          role: 'admin',
          projectIds: null,
          createdAt: clock.now(),
          expiresAt: null,
        });
      });
    },
  };
}

/** Whether an earlier start fixed the same. */
function isSame(
  row: WholeToken,
  { keyId, clientId, secretHash }: Pick<WholeToken, 'keyId' | 'clientId' | 'secretHash'>,
) {
  const whole = row.role === 'admin' && row.projectIds === null && row.expiresAt === null;
  return whole && row.keyId === keyId && row.clientId === clientId && equalInConstantTime(row.secretHash, secretHash);
}

/** A token without `$` is a secret with an empty id. */
function split(token: string): { keyId: string; secret: string } {
  const at = token.indexOf('$');
  return { keyId: token.slice(0, Math.max(at, 0)), secret: token.slice(at + 1) };
}
