/**
 * The token server of distribution's protocol: who shows a user's name and secret gets a signed token that says what it
 * may do in which repositories, and shows that to the region's host.
 *
 * Invariants: a token names only repositories of registries that the user belongs to, so nothing can be mounted from
 * another one's. It lives for minutes, so a user that was deleted or expired, or a registry that is full, is refused
 * soon. Before a token lets anybody push it is noted that somebody may (store.notePush), which garbage collection asks.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { atLeast } from '../../../authz/actor.ts';
import type { Actor } from '../../../authz/actor.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import { repositoryPattern } from '../schema.ts';
import { idIn, maxPushes, notePush, prefixOf } from '../store.ts';
import type { Access, Authority } from './authority.ts';
import { createFailures } from './failures.ts';
import * as store from './store.ts';
import type { Entrance } from './store.ts';

export interface TokenServerDeps {
  db: Db;
  clock: Clock;
  /** Real time, which hosts check tokens by; a client may have moved `clock`. */
  hostClock: Clock;
  authority(): Promise<Authority>;
  /** Who a token of Cloudyard belongs to. */
  authenticate(token: string): Promise<Actor | null>;
}

export interface TokenRequest {
  /** The address that it comes from. */
  address: string;
  name: string;
  secret: string;
  service: string;
  /** `repository:<name>:<actions>`, any number of them. */
  scopes: string[];
}

export interface TokenAnswer {
  token: string;
  access_token: string;
  expires_in: number;
  issued_at: string;
}

type RefusalCode = 'UNAUTHORIZED' | 'DENIED' | 'TOOMANYREQUESTS';

/** Told to the client in distribution's words; `code` is one of its error codes. */
export class TokenRefused extends Error {
  readonly code: RefusalCode;
  /** Seconds. */
  readonly retryAfter: number | null;
  constructor(code: RefusalCode, message: string, retryAfter: number | null = null) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/** Logging in under this name, a token of Cloudyard is the secret. */
const tokenUser = 'apikey';
const lifetimeMs = 300_000;
/** Of a token that may push: its registry may be full before it has ended. */
const pushLifetimeMs = 120_000;
const maxScopes = 20;
const gib = 1024 ** 3;
const userName = /^[a-z0-9]{1,16}$/;
const repositoryName = new RegExp(repositoryPattern);

export type TokenServer = ReturnType<typeof createTokenServer>;

export function createTokenServer(deps: TokenServerDeps) {
  const { db, clock, hostClock } = deps;
  const failures = createFailures(hostClock);

  /** @throws TokenRefused */
  const entrances = async (request: TokenRequest): Promise<Entrance[]> => {
    const { address } = request;
    const name = userName.test(request.name) ? request.name : '';
    const retryAfter = failures.retryAfter(name, address);
    if (retryAfter !== null) {
      const message = `too many failed logins${name && ` as ${name}`}; try again in ${retryAfter} s`;
      throw new TokenRefused('TOOMANYREQUESTS', message, retryAfter);
    }
    try {
      return await login(request);
    } catch (error) {
      if (error instanceof TokenRefused && error.code === 'UNAUTHORIZED') failures.note(name, address);
      throw error;
    }
  };

  /** @throws TokenRefused */
  const login = async ({ name, secret, service }: TokenRequest): Promise<Entrance[]> => {
    const regionIds = regionsOf(service);
    if (name === tokenUser && /^[\x21-\x7e]*\$[\x21-\x7e]*$/.test(secret)) {
      const actor = await deps.authenticate(secret);
      if (actor) {
        const found = await store.ofClient(db, regionIds, actor.clientId, actor.projectIds);
        return found.map((each) => ({ ...each, readOnly: !atLeast(actor, 'member'), expiresAt: null }));
      }
    }
    if (!userName.test(name)) throw wrong();
    const found = await store.ofUser(db, regionIds, name, (await deps.authority()).secretMac(name, secret));
    if (found.length === 0) throw wrong();
    const current = found.filter(({ expiresAt }) => expiresAt === null || expiresAt > clock.now());
    if (current.length > 0) return current;
    throw new TokenRefused('UNAUTHORIZED', `the user ${name} expired at ${found[0]!.expiresAt!.toISOString()}`);
  };

  /** When a user ends, in real time, milliseconds. */
  const endOf = (expiresAt: Date) => hostClock.now().getTime() + expiresAt.getTime() - clock.now().getTime();

  return {
    /** @throws TokenRefused */
    async issue(request: TokenRequest): Promise<TokenAnswer> {
      const mine = new Map((await entrances(request)).map((each) => [each.id, each]));
      const access: Access[] = [];
      let until = hostClock.now().getTime() + lifetimeMs;
      for (const scope of request.scopes.slice(0, maxScopes)) {
        const wanted = parseScope(scope);
        const entrance = wanted && mine.get(wanted.registryId);
        if (!wanted || !entrance || prefixOf(entrance) !== wanted.prefix) continue;
        const actions = grant(entrance, wanted.actions);
        if (actions.includes('push')) {
          await mayPush(db, entrance.id, wanted.repository);
          until = Math.min(until, hostClock.now().getTime() + pushLifetimeMs);
        }
        if (entrance.expiresAt) until = Math.min(until, endOf(entrance.expiresAt));
        const limit = actions.includes('push') ? { storage_limit: entrance.storageLimit * gib } : {};
        access.push({ type: 'repository', name: wanted.name, actions, ...limit });
      }
      // After a wait for garbage collection: the token's time begins when the push was noted.
      const from = hostClock.now();
      const { service, name: subject } = request;
      const token = await (await deps.authority()).sign({ service, subject, access, from, until: new Date(until) });
      const expires_in = Math.max(1, Math.floor((until - from.getTime()) / 1000));
      return { token, access_token: token, expires_in, issued_at: from.toISOString() };
    },
  };
}

/** The audience of tokens for a host that serves these regions. */
export function serviceOf(regionIds: number[]): string {
  return `cloudyard:${[...regionIds].sort((a, b) => a - b).join(',')}`;
}

function regionsOf(service: string): number[] {
  const list = /^cloudyard:(\d{1,9}(?:,\d{1,9})*)$/.exec(service)?.[1];
  if (list === undefined) throw new TokenRefused('DENIED', 'there is no such service');
  return list.split(',').map(Number);
}

function wrong(): TokenRefused {
  return new TokenRefused('UNAUTHORIZED', 'no registry has a user of this name and secret');
}

/** Null for what is not a valid name of a repository in a registry. */
function parseScope(scope: string) {
  if (scope.length > 400) return null;
  const found = /^repository(?:\([a-z]*\))?:(?<name>(?<prefix>[a-z0-9-]+)\/(?<repository>[^:]+)):(?<actions>[a-z*,]+)$/;
  const { name = '', prefix = '', repository = '', actions = '' } = found.exec(scope)?.groups ?? {};
  const registryId = idIn(prefix);
  if (registryId === null || name.length > 255 || !repositoryName.test(repository)) return null;
  return { prefix, repository, name, registryId, actions: actions.split(',') };
}

/** What of the wanted actions is allowed. @throws TokenRefused when it is to push to what is full */
function grant({ name, storageLimit, storageUsed, readOnly }: Entrance, wanted: string[]): string[] {
  const all = wanted.includes('*');
  const full = storageUsed >= storageLimit * gib;
  if (full && !readOnly && wanted.includes('push')) {
    const used = (storageUsed / gib).toFixed(2);
    throw new TokenRefused(
      'DENIED',
      `registry ${name} is full: it holds ${used} GiB, and its storage_limit is ${storageLimit} GiB; ` +
        'delete images or resize it, then push again (pulls and deletes go on)',
    );
  }
  const allowed = readOnly ? ['pull'] : full ? ['pull', 'delete'] : ['pull', 'push', 'delete'];
  return allowed.filter((action) => all || wanted.includes(action));
}

/** Waits while garbage collection takes links from the repository, which takes moments. @throws TokenRefused */
async function mayPush(db: Db, registryId: number, repository: string): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    const noted = await notePush(db, registryId, repository);
    if (noted === 'granted') return;
    if (noted === 'too many') {
      const message = `the registry had pushes to ${maxPushes} repositories within two days; try again later`;
      throw new TokenRefused('DENIED', message);
    }
    await sleep(50);
  }
  throw new TokenRefused('DENIED', 'the repository is being cleaned; try again in a moment');
}
