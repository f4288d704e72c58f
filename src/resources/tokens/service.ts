/**
 * Tokens: `<id>$<secret>`. Only a SHA-256 of the secret is stored (a secret is 256 random bits, so a slow hash would
 * add nothing), and it is compared in constant time.
 */
import { type Audit, commandAction } from '../../audit/audit.ts';
import { type Actor, actorOf, type Role } from '../../authz/actor.ts';
import { createRecognized, newCredential, readCredential } from '../../authz/secret-text.ts';
import type { Clock } from '../../platform/clock.ts';
import { equalInConstantTime } from '../../platform/crypto.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { createLastUses } from '../../platform/last-uses.ts';
import { type MaybePromise, whenKnown } from '../../platform/maybe-promise.ts';
import type { ReferenceCaches } from '../../platform/reference-cache.ts';
import * as store from './store.ts';
import type { TokenRow } from './store.ts';

interface NewToken {
  clientId: number;
  name: string;
  role: Role;
  projectIds: number[] | null;
  expiresAt: Date | null;
  /** The person who signed in; absent: created by hand. */
  identity?: string;
}

/** What a token may do. */
type Rights = Pick<NewToken, 'clientId' | 'role' | 'projectIds'>;

/** The name of the token that the environment sets. */
const fixedName = 'CLOUDYARD_BOOTSTRAP_TOKEN';

/** The interval of writes of the times of use. */
const writeSeconds = 60;

export type Tokens = ReturnType<typeof createTokens>;

export function createTokens(deps: { db: Db; clock: Clock; caches: ReferenceCaches; audit: Audit }) {
  const { db, clock, caches, audit } = deps;
  const factsOf = caches.cached((keyId: string) => store.findFacts(db, keyId));
  const recognized = createRecognized();
  const lastUses = createLastUses((ids, times) => store.recordUses(db, ids, times), writeSeconds);

  const insert = async (tx: Tx, token: NewToken): Promise<{ row: TokenRow; text: string }> => {
    const { text, ...credential } = newCredential();
    return { row: await store.insert(tx, { ...token, ...credential, createdAt: clock.now() }), text };
  };

  /** Every server rejects the token within a second. Returns its client; undefined if the token does not exist. */
  const revokeIn = async (tx: Tx, id: number): Promise<{ clientId: number } | undefined> => {
    await caches.changed(tx);
    return store.revoke(tx, id, clock.now());
  };

  /** The actor of a token; null when it is unknown, wrong, expired or revoked. Usually without a query. */
  const check = (token: string): MaybePromise<Actor | null> => {
    const { keyId, secretHash } = readCredential(token);
    return whenKnown(factsOf(keyId), (facts) => {
      if (!facts || !equalInConstantTime(facts.secret_hash, secretHash)) return null;
      if (facts.revoked_at || (facts.expires_at && facts.expires_at <= clock.now())) {
        recognized.delete(keyId);
        return null;
      }
      recognized.add(keyId, facts.secret_hash);
      return { ...actorOf(facts.id, facts), expiresAt: facts.expires_at };
    });
  };

  return {
    check,

    /** As `check`, and records the use of the token. */
    authenticate(token: string): MaybePromise<Actor | null> {
      return whenKnown(check(token), (actor) => {
        if (actor) lastUses.record(actor.tokenId, clock.now());
        return actor;
      });
    },

    /** Whether the token was valid at its last use on this server. Needs no query; it may have been revoked since. */
    recognizes: recognized.has,

    /** Writes the times of use until `stop`. */
    start: lastUses.start,
    flush: lastUses.flush,
    stop: lastUses.stop,

    /** Inserts a token. Only this call returns its text. */
    insert,

    /** Creates a token for a command. */
    async create(token: NewToken): Promise<{ id: number; text: string }> {
      return audit.transaction(db, commandAction('createToken', token.clientId), async (tx) => {
        const { row, text } = await insert(tx, token);
        return { id: row.id, text };
      });
    },

    /** Creates the admin token of a first start; null when the client ever had an admin token. */
    async createFirst(clientId: number): Promise<string | null> {
      return audit.transaction(db, commandAction('createFirstToken', clientId), async (tx) => {
        await store.lockClient(tx, clientId);
        if (await store.hasAdmin(tx, clientId)) return null;
        const first = { clientId, name: 'first start', role: 'admin' as const, projectIds: null, expiresAt: null };
        return (await insert(tx, first)).text;
      });
    },

    list: (): Promise<TokenRow[]> => store.list(db),

    revokeIn,

    /** Removes the tokens of people that ended before this time. Tokens that were created by hand stay. */
    removeEndedSignIns: (before: Date, signal?: AbortSignal): Promise<number> =>
      store.removeEndedSignIns(db, before, signal),

    /** Revokes the tokens of a person that do not have exactly these rights; null: all of them. */
    async revokeOthers(tx: Tx, identity: string, rights: Rights | null): Promise<void> {
      await caches.changed(tx);
      await store.revokeOthers(tx, identity, rights, clock.now());
    },

    /**
     * Revokes for a command, by the id, the part before the `$` or the whole token. False if the token does not exist.
     * @throws Error if the text names two tokens
     */
    async revoke(text: string): Promise<boolean> {
      const token = await findNamed(db, text);
      if (!token) return false;
      return audit.transaction(db, commandAction('revokeToken'), async (tx, act) => {
        const revoked = await revokeIn(tx, token.id);
        act.clientId = revoked?.clientId ?? null;
        return revoked !== undefined;
      });
    },

    /** Sets the operator's fixed token, and revokes the token that an earlier start set. */
    async setFixed(text: string, clientId: number): Promise<void> {
      const credential = readCredential(text);
      const fixed = await store.findValid(db, clientId, fixedName);
      if (fixed.length === 1 && isSame(fixed[0]!, { ...credential, clientId })) return;
      await audit.transaction(db, commandAction('fixToken', clientId), async (tx) => {
        await caches.changed(tx);
        await store.revokeNamed(tx, clientId, fixedName, clock.now());
        await store.replace(tx, {
          ...credential,
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

/** The token with this id, this part before the `$`, or this text. @throws Error if there are two */
async function findNamed(db: Db, text: string): Promise<{ id: number; keyId: string } | undefined> {
  const isWhole = text.includes('$');
  const idOrKey = isWhole ? readCredential(text).keyId : text;
  const found = await store.findNamed(db, idOrKey);
  const [first, second] = isWhole ? found.filter(({ keyId }) => keyId === idOrKey) : found;
  if (!first || !second) return first;
  const [withId, withKey] = first.keyId === idOrKey ? [second, first] : [first, second];
  throw new Error(
    `${idOrKey} is the id of one token and the key of another; ` +
      `name the first by its key ${withId.keyId}, the other by its id ${withKey.id}`,
  );
}

/** Whether an earlier start set the same token. */
function isSame(row: TokenRow, { keyId, clientId, secretHash }: Pick<TokenRow, 'keyId' | 'clientId' | 'secretHash'>) {
  const isUnrestricted = row.role === 'admin' && row.projectIds === null && row.expiresAt === null;
  return (
    isUnrestricted &&
    row.keyId === keyId &&
    row.clientId === clientId &&
    equalInConstantTime(row.secretHash, secretHash)
  );
}
