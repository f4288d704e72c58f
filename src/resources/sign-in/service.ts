/**
 * Sign-in with an OpenID Connect provider.
 *
 * Invariant: a person has the rights of the first entry of the groups file that names one of their groups, as of their last
 * sign-in, and for CLOUDYARD_OIDC_SECONDS at most. A sign-in revokes the person's tokens that have other rights.
 */
import type { Audit, AuditedAction } from '../../audit/audit.ts';
import type { RequestContext, RequestFacts } from '../../authz/actor.ts';
import { ClientError } from '../../errors/catalogue.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import { EncryptionError, type Keyring } from '../../platform/encryption.ts';
import type { Logger } from '../../platform/log.ts';
import type { OidcSettings } from '../../platform/oidc-settings.ts';
import { ConfigurationFileError } from '../../platform/configuration-file-error.ts';
import type { Clients } from '../clients/service.ts';
import type { Projects } from '../projects/service.ts';
import type { Tokens } from '../tokens/service.ts';
import { entryOf, type GroupEntry, readGroups } from './groups.ts';
import { createProvider, type Expected, type Person } from './provider.ts';
import type { DeviceSignIn } from './schema.ts';

interface SignInDeps {
  db: Db;
  clock: Clock;
  /** Real time, also in development mode. */
  hostClock: Clock;
  audit: Audit;
  keyring: Keyring;
  log: Logger;
  tokens: Tokens;
  clients: Clients;
  projects: Projects;
  settings: OidcSettings;
  publicUrl: string;
}

export type SignIn = ReturnType<typeof createSignIn>;

/** A request without a token. */
export interface SignInRequest {
  requestId: string;
  facts: RequestFacts;
}

export const callbackPath = '/cloudyard/v1/sign_in/oidc/callback';
/** How long a person may take at the provider. */
export const pendingSeconds = 600;

interface Pending {
  expected: Expected;
  returnTo: string;
  until: number;
}

/** @throws ConfigurationFileError if the groups file is invalid */
export function createSignIn({ settings, publicUrl, ...deps }: SignInDeps) {
  const { db, clock, hostClock, audit, keyring, log, tokens, clients, projects } = deps;
  const provider = createProvider(settings, publicUrl + callbackPath);
  const inFuture = (seconds: number) => hostClock.now().getTime() + seconds * 1000;
  let groups = readGroups(settings.groupsFile);

  /** The file as it is now; as it was if it has become invalid. */
  const currentGroups = (): GroupEntry[] => {
    try {
      groups = readGroups(settings.groupsFile);
    } catch (error) {
      if (!(error instanceof ConfigurationFileError)) throw error;
      log.error({ faults: error.message.split('\n') }, 'the groups file is invalid; its last valid content applies');
    }
    return groups;
  };

  const isKnown = async ({ client, projects: ids = [] }: GroupEntry): Promise<boolean> => {
    if (!(await clients.exists(client))) return false;
    const owners = await Promise.all(ids.map((id) => projects.clientOf(id)));
    return owners.every((owner) => owner === client);
  };

  const actionOf = ({ requestId, facts }: SignInRequest, clientId: number | null): AuditedAction => ({
    operation: facts.operation,
    actor: null,
    clientId,
    requestId,
    origin: facts.origin,
    always: clientId !== null,
  });

  /** Creates a token for the person. @throws ClientError 403 */
  const admit = async (
    person: Person,
    request: SignInRequest,
  ): Promise<{ id: number; text: string; expiresAt: Date }> => {
    const entry = entryOf(currentGroups(), person.groups);
    const allowed = entry && (await isKnown(entry)) ? entry : null;
    const rights = allowed && { clientId: allowed.client, role: allowed.role, projectIds: allowed.projects ?? null };
    const expiresAt = new Date(clock.now().getTime() + settings.seconds * 1000);
    const created = await audit.transaction(db, actionOf(request, rights?.clientId ?? null), async (tx) => {
      await tokens.revokeOthers(tx, person.identity, rights);
      return rights && tokens.insert(tx, { ...rights, name: person.name, identity: person.identity, expiresAt });
    });
    if (created) return { id: created.row.id, text: created.text, expiresAt };
    if (entry) log.error({ group: entry.group }, 'the groups file names a client or project that does not exist');
    throw new ClientError('Forbidden', `none of the groups of ${person.name} has access`);
  };

  return {
    issuer: settings.issuer,

    /** `returnTo`: a path of this server. */
    async begin(returnTo: string): Promise<{ url: string; pending: string }> {
      const { url, expected } = await provider.begin();
      return { url, pending: sealed(keyring, 'browser', { expected, returnTo, until: inFuture(pendingSeconds) }) };
    },

    /** Returns the context of the new token, for a session. @throws ClientError 401, 403, 503 */
    async finish(
      query: string,
      sealedPending: string,
      request: SignInRequest,
    ): Promise<{ context: RequestContext; returnTo: string }> {
      const pending = unsealed<Pending>(keyring, 'browser', sealedPending, hostClock);
      if (!pending) throw new ClientError('Unauthenticated', 'the sign-in took too long, or began in another browser');
      const { text } = await admit(await provider.finish(query, pending.expected), request);
      const actor = await tokens.authenticate(text);
      const context = { actor: actor!, requestId: request.requestId, request: request.facts };
      return { context, returnTo: pending.returnTo };
    },

    async beginDevice(): Promise<DeviceSignIn> {
      const { device_code: code, ...answer } = await provider.beginDevice();
      const until = inFuture(answer.expires_in);
      return { ...answer, device: sealed(keyring, 'device', { code, until }) };
    },

    /** Null while the person has not confirmed. @throws ClientError 401, 403, 503 */
    async finishDevice(device: string, request: SignInRequest): Promise<{ text: string; expiresAt: Date } | null> {
      const pending = unsealed<{ code: string; until: number }>(keyring, 'device', device, hostClock);
      if (!pending) throw new ClientError('Unauthenticated', 'the code is unknown or has expired; start again');
      const person = await provider.finishDevice(pending.code);
      return person && admit(person, request);
    },
  };
}

function sealed<T extends { until: number }>(keyring: Keyring, purpose: string, value: T): string {
  return keyring.encrypt(Buffer.from(JSON.stringify(value)), `sign_in ${purpose}`).toString('base64url');
}

/** Null for a text that another key made, or that has expired. */
function unsealed<T extends { until: number }>(
  keyring: Keyring,
  purpose: string,
  text: string,
  clock: Clock,
): T | null {
  try {
    const value = JSON.parse(keyring.decrypt(Buffer.from(text, 'base64url'), `sign_in ${purpose}`).toString()) as T;
    return value.until > clock.now().getTime() ? value : null;
  } catch (error) {
    if (error instanceof EncryptionError) return null;
    throw error;
  }
}
