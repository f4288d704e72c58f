/**
 * Sessions of browsers: a cookie `<id>$<secret>` that acts for a token (README.md).
 *
 * Invariant: a session never outlives its token, and has no right that the token lacks.
 */
import { type Audit, requestAction } from '../../audit/audit.ts';
import { type Actor, actorOf, type RequestContext } from '../../authz/actor.ts';
import { createRecognized, newCredential, readCredential } from '../../authz/secret-text.ts';
import { type Clock, withZone } from '../../platform/clock.ts';
import { equalInConstantTime } from '../../platform/crypto.ts';
import type { Db } from '../../platform/db.ts';
import { createLastUses } from '../../platform/last-uses.ts';
import type { ReferenceCaches } from '../../platform/reference-cache.ts';
import { maxSessionSeconds } from '../../platform/settings.ts';
import type { Session } from './schema.ts';
import * as store from './store.ts';
import type { SessionFacts } from './store.ts';

interface SessionsDeps {
  db: Db;
  /** The time that tokens expire by. */
  clock: Clock;
  /** The time of the host. */
  hostClock: Clock;
  caches: ReferenceCaches;
  audit: Audit;
  /** Seconds without a request after which a session ends. */
  idleSeconds: number;
  isDevelopment: boolean;
}

export type Sessions = ReturnType<typeof createSessions>;

/** A further sign-in with the token ends the session that was used least recently. */
const maxOfToken = 100;
const maxWriteSeconds = 60;

export function createSessions(deps: SessionsDeps) {
  const { db, clock, hostClock, caches, audit, idleSeconds } = deps;
  const factsOf = caches.cached((keyId: string) => store.findFacts(db, keyId));
  const recognized = createRecognized();
  const lastUses = createLastUses(
    (ids, times) => store.recordUses(db, ids, times),
    Math.min(maxWriteSeconds, idleSeconds / 4),
  );

  const oldestUse = (now: Date) => new Date(now.getTime() - idleSeconds * 1000);

  /** Whether the session is still in use. The copy in the cache does not show uses of other servers. */
  const isUsed = async (facts: SessionFacts, keyId: string, now: Date): Promise<boolean> => {
    const oldest = oldestUse(now);
    if (facts.last_used_at > oldest || (lastUses.find(facts.id) ?? oldest) > oldest) return true;
    const current = await store.findFacts(db, keyId);
    return current !== null && current.last_used_at > oldest;
  };

  /** The session of a cookie; null if it is unknown, wrong or has ended. Usually without a query. */
  const find = async (cookie: string): Promise<SessionFacts | null> => {
    const { keyId, secretHash } = readCredential(cookie);
    const facts = await factsOf(keyId);
    if (!facts || !equalInConstantTime(facts.secret_hash, secretHash)) return null;
    const now = hostClock.now();
    const { revoked_at: revokedAt, token_expires_at: tokenExpiresAt } = facts;
    const hasEnded = revokedAt !== null || facts.expires_at <= now || (tokenExpiresAt && tokenExpiresAt <= clock.now());
    if (hasEnded || !(await isUsed(facts, keyId, now))) {
      recognized.delete(keyId);
      return null;
    }
    recognized.add(keyId, facts.secret_hash);
    return facts;
  };

  /** Finds the session and records its use. */
  const use = async (cookie: string): Promise<SessionFacts | null> => {
    const facts = await find(cookie);
    if (!facts) return null;
    // The cached copy, so that a session in constant use does not seem idle.
    facts.last_used_at = hostClock.now();
    lastUses.record(facts.id, facts.last_used_at);
    return facts;
  };

  return {
    /** The actor of the token of the session. An open event stream of an idle session does not keep it. */
    async check(cookie: string): Promise<Actor | null> {
      const facts = await find(cookie);
      return facts && actorOfSession(facts);
    },

    /** As `check`, and records the use of the session. */
    async authenticate(cookie: string): Promise<Actor | null> {
      const facts = await use(cookie);
      return facts && actorOfSession(facts);
    },

    /** Whether the session was valid at its last use on this server. Needs no query. */
    recognizes: recognized.has,

    /** Creates a session of the caller's token. Only this call returns the cookie. */
    async create(context: RequestContext): Promise<string> {
      const { text, ...credential } = newCredential();
      const now = hostClock.now();
      const expiresAt = new Date(now.getTime() + maxSessionSeconds * 1000);
      const { tokenId } = context.actor;
      await audit.transaction(db, requestAction(context), async (tx) => {
        await store.insert(tx, { ...credential, tokenId, createdAt: now, lastUsedAt: now, expiresAt });
        if (await store.removeAllBut(tx, tokenId, maxOfToken)) await caches.changed(tx);
      });
      return text;
    },

    /** Describes a session without the token that protects it against forged requests; null if it has ended. */
    async get(cookie: string): Promise<Omit<Session, 'csrf_token'> | null> {
      const facts = await use(cookie);
      if (!facts) return null;
      const ends = [facts.expires_at, facts.token_expires_at ?? facts.expires_at].map(Number);
      return {
        token_id: facts.token_id,
        token_name: facts.token_name,
        client_id: facts.client_id,
        client_name: facts.client_name,
        role: facts.role,
        is_operator: facts.operator,
        project_ids: facts.project_ids,
        expires_at: withZone(new Date(Math.min(...ends))),
        idle_timeout_seconds: idleSeconds,
        is_development: deps.isDevelopment,
      };
    },

    /** Every server refuses the session within a second. */
    async delete(context: RequestContext, id: number): Promise<void> {
      await audit.transaction(db, requestAction(context), async (tx) => {
        await caches.changed(tx);
        await store.remove(tx, id);
      });
    },

    async removeEnded(): Promise<void> {
      const now = hostClock.now();
      await store.removeEnded(db, now, oldestUse(now));
    },

    /** Writes the times of use until `stop`. */
    start: lastUses.start,
    flush: lastUses.flush,
    stop: lastUses.stop,
  };
}

function actorOfSession(facts: SessionFacts): Actor {
  return { ...actorOf(facts.token_id, facts), sessionId: facts.id, expiresAt: facts.token_expires_at };
}
