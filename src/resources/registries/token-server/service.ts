/**
 * The token server of distribution's protocol: a client sends the name and secret of a user, and gets a signed token with
 * the permitted actions by repository, which it sends to the region's host.
 *
 * Invariants: a token contains only repositories of registries that the user belongs to, so that no layer can be mounted
 * from another registry. It is valid for minutes, so that deleted and expired users and full registries are refused soon.
 * A token that permits a push is recorded first (store.notePush), because garbage collection must wait for the push.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { atLeast } from '../../../authz/actor.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Db } from '../../../platform/db.ts';
import { sourceOf } from '../../../platform/network-address.ts';
import { limited, oneAtATime } from '../../../platform/turns.ts';
import type { Tokens } from '../../tokens/service.ts';
import { repositoryPattern } from '../schema.ts';
import { idIn, maxPushes, notePush, prefixOf } from '../store.ts';
import type { Access, Authority } from './authority.ts';
import { createFailures } from './failures.ts';
import * as store from './store.ts';
import type { RegistryAccess } from './store.ts';

interface TokenServerDeps {
  db: Db;
  clock: Clock;
  /** Real time, by which hosts check tokens; in development mode clients can move `clock`. */
  hostClock: Clock;
  authority(): Promise<Authority>;
  tokens: Pick<Tokens, 'authenticate' | 'recognizes'>;
}

interface TokenRequest {
  /** The address of the client. */
  address: string;
  /** Whether the client has disconnected. */
  isGone(): boolean;
  name: string;
  secret: string;
  service: string;
  /** `repository:<name>:<actions>`, any number of them. */
  scopes: string[];
}

type RefusalCode = 'UNAUTHORIZED' | 'DENIED' | 'TOOMANYREQUESTS';

/** An error in distribution's format; `code` is one of its error codes. */
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

/** The user name of logins with a token of Cloudyard as the secret. */
const tokenUser = 'apikey';
const lifetimeMs = 300_000;
/** Shorter for tokens that permit a push, because the registry may become full meanwhile. */
const pushLifetimeMs = 120_000;
const maxScopes = 20;
/** The largest part of the pool that the statements of all logins take: the rest is for the requests of the API. */
const maxShare = 0.25;
const gib = 1024 ** 3;
const userName = /^[a-z0-9]{1,16}$/;
const repositoryName = new RegExp(repositoryPattern);

export type TokenServer = ReturnType<typeof createTokenServer>;

export function createTokenServer(deps: TokenServerDeps) {
  const { db, clock, hostClock } = deps;
  const failures = createFailures(hostClock);
  const ofSource = oneAtATime();
  const runStatement = limited(Math.max(1, Math.floor(db.$client.options.max * maxShare)));

  /** Runs the work of an address one after the other, so that a flood delays no other address. */
  const takeTurn = <T>({ address, isGone }: TokenRequest, work: () => Promise<T>): Promise<T> =>
    ofSource(sourceOf(address), async () => {
      if (isGone()) throw new TokenRefused('DENIED', 'the client has disconnected');
      return work();
    });

  /** One turn, so that a failure is counted before the next login of the address starts. @throws TokenRefused */
  const authenticate = (request: TokenRequest): Promise<RegistryAccess[]> =>
    takeTurn(request, async () => {
      const { address } = request;
      const name = userName.test(request.name) ? request.name : '';
      // Failures must not lock out the tokens in use of an address, as in http/anonymous-limit.ts.
      const isRecognized = request.name === tokenUser && deps.tokens.recognizes(request.secret);
      const retryAfter = isRecognized ? null : failures.retryAfter(name, address);
      if (retryAfter !== null) {
        const message = `too many failed logins${name && ` as ${name}`}; try again in ${retryAfter} s`;
        throw new TokenRefused('TOOMANYREQUESTS', message, retryAfter);
      }
      try {
        return await login(request);
      } catch (error) {
        if (error instanceof TokenRefused && error.code === 'UNAUTHORIZED') failures.record([name], address);
        throw error;
      }
    });

  /** @throws TokenRefused */
  const login = async (request: TokenRequest): Promise<RegistryAccess[]> => {
    const { name, secret, service } = request;
    const regionIds = regionsOf(service);
    if (name === tokenUser && /^[\x21-\x7e]*\$[\x21-\x7e]*$/.test(secret)) {
      const actor = await runStatement(async () => deps.tokens.authenticate(secret));
      if (actor) {
        const found = await runStatement(() => store.findByClient(db, regionIds, actor));
        const access = { readOnly: !atLeast(actor, 'member'), expiresAt: actor.expiresAt ?? null };
        return found.map((each) => ({ ...each, ...access }));
      }
    }
    if (!userName.test(name)) throw unknownUser();
    const { secretMac } = await deps.authority();
    const found = await runStatement(() => store.findByUser(db, regionIds, name, secretMac(name, secret)));
    if (found.length === 0) throw unknownUser();
    const current = found.filter(({ expiresAt }) => expiresAt === null || expiresAt > clock.now());
    if (current.length > 0) return withoutGuessed(request, current);
    throw new TokenRefused('UNAUTHORIZED', `the user ${name} expired at ${found[0]!.expiresAt!.toISOString()}`);
  };

  /**
   * The registries that the login of a user includes, without those of which a user of this name had too many failed logins.
   * Anyone may have a user of the same name with a guessed secret in another registry: that login succeeds, and the access to
   * this registry shows whether the guess is right. So a requested registry that the login does not include counts as a failed
   * login of a user of that registry, once for each request.
   */
  const withoutGuessed = (request: TokenRequest, found: RegistryAccess[]): RegistryAccess[] => {
    const { name, address } = request;
    const userOf = (id: number) => `${name} of ${id}`;
    const isAllowed = (id: number) => failures.retryAfter(userOf(id), address) === null;
    const allowed = found.filter(({ id }) => isAllowed(id));
    const missing = new Set(parseScopes(request).map(({ registryId }) => registryId));
    for (const { id } of found) missing.delete(id);
    failures.record([...missing].filter(isAllowed).map(userOf), address);
    return allowed;
  };

  /** Units: milliseconds of real time. */
  const expiryOf = (expiresAt: Date) => hostClock.now().getTime() + expiresAt.getTime() - clock.now().getTime();

  return {
    /** @throws TokenRefused */
    async issue(request: TokenRequest) {
      const registries = new Map((await authenticate(request)).map((each) => [each.id, each]));
      const access: Access[] = [];
      let until = hostClock.now().getTime() + lifetimeMs;
      for (const requested of parseScopes(request)) {
        const registry = registries.get(requested.registryId);
        if (!registry || prefixOf(registry) !== requested.prefix) continue;
        const actions = permittedActions(registry, requested.actions);
        if (actions.includes('push')) {
          await awaitPushPermission(() =>
            takeTurn(request, () => runStatement(() => notePush(db, registry.id, requested.repository))),
          );
          until = Math.min(until, hostClock.now().getTime() + pushLifetimeMs);
        }
        if (registry.expiresAt) until = Math.min(until, expiryOf(registry.expiresAt));
        const limit = actions.includes('push') ? { storage_limit: registry.storageLimit * gib } : {};
        access.push({ type: 'repository', name: requested.name, actions, ...limit });
      }
      // The time starts here, because recording a push may have waited for garbage collection.
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
  if (list === undefined) throw new TokenRefused('DENIED', 'the service is unknown');
  return list.split(',').map(Number);
}

function unknownUser(): TokenRefused {
  return new TokenRefused('UNAUTHORIZED', 'no registry has a user with this name and secret');
}

/** The scopes that name a repository of a registry. */
function parseScopes({ scopes }: TokenRequest) {
  return scopes.slice(0, maxScopes).flatMap((scope) => parseScope(scope) ?? []);
}

/** Null unless the scope names a repository of a registry. */
function parseScope(scope: string) {
  if (scope.length > 400) return null;
  const found = /^repository(?:\([a-z]*\))?:(?<name>(?<prefix>[a-z0-9-]+)\/(?<repository>[^:]+)):(?<actions>[a-z*,]+)$/;
  const { name = '', prefix = '', repository = '', actions = '' } = found.exec(scope)?.groups ?? {};
  const registryId = idIn(prefix);
  if (registryId === null || name.length > 255 || !repositoryName.test(repository)) return null;
  return { prefix, repository, name, registryId, actions: actions.split(',') };
}

/** The permitted actions among the requested ones. @throws TokenRefused for a push to a full registry */
function permittedActions(
  { name, storageLimit, storageUsed, readOnly }: RegistryAccess,
  requested: string[],
): string[] {
  const all = requested.includes('*');
  const full = storageUsed >= storageLimit * gib;
  if (full && !readOnly && requested.includes('push')) {
    const used = (storageUsed / gib).toFixed(2);
    throw new TokenRefused(
      'DENIED',
      `registry ${name} is full: it holds ${used} GiB, and its storage_limit is ${storageLimit} GiB; ` +
        'resize it, or delete images, whose space is freed by garbage collection, then push again (pulls and deletes ' +
        'still work)',
    );
  }
  const allowed = readOnly ? ['pull'] : full ? ['pull', 'delete'] : ['pull', 'push', 'delete'];
  return allowed.filter((action) => all || requested.includes(action));
}

/** Records the push once garbage collection has released the repository, normally within moments. @throws TokenRefused */
async function awaitPushPermission(note: () => ReturnType<typeof notePush>): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    const result = await note();
    if (result === 'granted') return;
    if (result === 'too many') {
      const message = `the registry had pushes to ${maxPushes} repositories within two days, the maximum; try again later`;
      throw new TokenRefused('DENIED', message);
    }
    await sleep(50);
  }
  throw new TokenRefused('DENIED', 'garbage collection of the repository is running; try again in a moment');
}
