/**
 * The OpenID Connect provider. Signatures of ID tokens are verified, although they come by TLS from the provider itself.
 *
 * Failure modes: a provider that does not answer, or whose answer is not valid, is an error of that sign-in. The
 * description of the provider is kept when it was read once.
 */
import type * as OpenIdClient from 'openid-client';
import { ClientError } from '../../errors/catalogue.ts';
import type { OidcSettings } from '../../platform/oidc-settings.ts';
import type { DeviceSignIn } from './schema.ts';

/** A person, as the provider describes them. */
export interface Person {
  /** Issuer and subject, which never change. */
  identity: string;
  /** For people: an e-mail address or a user name. */
  name: string;
  groups: string[];
}

/** The values that must match when the browser returns. */
export interface Expected {
  state: string;
  nonce: string;
  verifier: string;
}

const timeoutSeconds = 10;
const toleratedSkewSeconds = 30;
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';

type Library = typeof OpenIdClient;
type Claims = Record<string, unknown>;

interface Opened {
  library: Library;
  configuration: OpenIdClient.Configuration;
}

export function createProvider(settings: OidcSettings, redirectUri: string) {
  const { scopes, groupsClaim } = settings;
  let opening: Promise<Opened> | undefined;

  const open = () => {
    opening ??= discover(settings).catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };

  return {
    /** Where to send the browser, and the values to keep until it returns. */
    begin: (): Promise<{ url: string; expected: Expected }> =>
      attempt(async () => {
        const { library, configuration } = await open();
        const verifier = library.randomPKCECodeVerifier();
        const expected = { state: library.randomState(), nonce: library.randomNonce(), verifier };
        const url = library.buildAuthorizationUrl(configuration, {
          ...{ redirect_uri: redirectUri, scope: scopes, state: expected.state, nonce: expected.nonce },
          code_challenge: await library.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        });
        return { url: url.href, expected };
      }),

    /** `query`: of the URL that the provider redirected the browser to. */
    finish: (query: string, { state, nonce, verifier }: Expected): Promise<Person> =>
      attempt(async () => {
        const opened = await open();
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        };
        const url = new URL(`${redirectUri}?${query}`);
        const tokens = await opened.library.authorizationCodeGrant(opened.configuration, url, checks);
        return personOf(opened, tokens, groupsClaim);
      }),

    beginDevice: (): Promise<Omit<DeviceSignIn, 'device'> & { device_code: string }> =>
      attempt(async () => {
        const { library, configuration } = await open();
        const answer = await library.initiateDeviceAuthorization(configuration, { scope: scopes });
        const { device_code, user_code, verification_uri, expires_in } = answer;
        const complete = answer.verification_uri_complete ?? null;
        return {
          ...{ device_code, user_code, verification_uri, verification_uri_complete: complete, expires_in },
          interval: answer.interval ?? 5,
        };
      }),

    /** Null while the person has not confirmed. */
    finishDevice: (deviceCode: string): Promise<Person | null> =>
      attempt(async () => {
        const opened = await open();
        try {
          const parameters = { device_code: deviceCode };
          const tokens = await opened.library.genericGrantRequest(opened.configuration, deviceGrant, parameters);
          return await personOf(opened, tokens, groupsClaim);
        } catch (error) {
          const { error: code } = error as { error?: unknown };
          if (code === 'authorization_pending' || code === 'slow_down') return null;
          throw error;
        }
      }),
  };
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<Opened> {
  const library = await import('openid-client');
  const execute = [library.enableNonRepudiationChecks];
  if (issuer.startsWith('http:')) execute.push(library.allowInsecureRequests);
  const configuration = await library.discovery(
    new URL(issuer),
    clientId,
    { [library.clockTolerance]: toleratedSkewSeconds },
    library.ClientSecretBasic(clientSecret),
    { execute, timeout: timeoutSeconds },
  );
  return { library, configuration };
}

/** Converts errors of the library. @throws ClientError 401, 503 */
async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof ClientError ? cause : failureOf(cause);
  }
}

async function personOf(
  { library, configuration }: Opened,
  tokens: OpenIdClient.TokenEndpointResponse & OpenIdClient.TokenEndpointResponseHelpers,
  groupsClaim: string,
): Promise<Person> {
  let claims: Claims | undefined = tokens.claims();
  if (!claims) throw new Error('the provider sent no ID token');
  const { iss, sub } = claims as { iss: string; sub: string };
  if (claims[groupsClaim] === undefined && configuration.serverMetadata().userinfo_endpoint !== undefined) {
    claims = { ...(await library.fetchUserInfo(configuration, tokens.access_token, sub)), ...claims };
  }
  const groups = claims[groupsClaim];
  return {
    identity: `${iss} ${sub}`,
    name: nameOf(claims),
    groups: (Array.isArray(groups) ? groups : [groups]).filter((each) => typeof each === 'string'),
  };
}

const maxName = 200;

function nameOf({ email, preferred_username: user, sub }: Claims): string {
  const name = [email, user, sub].find((each) => typeof each === 'string' && each.trim() !== '') as string;
  return name.replaceAll(/\p{Cc}/gu, '').slice(0, maxName);
}

/** Codes of the library for answers that it refuses, as opposed to a provider that does not answer. */
const refusal = /^OAUTH_(?!TIMEOUT|RESPONSE_IS_NOT_CONFORM|RESPONSE_IS_NOT_JSON)/;

function failureOf(cause: unknown): ClientError {
  const { code, error, error_description: text, message, cause: inner } = cause as Error & Record<string, unknown>;
  if (error === 'access_denied') return new ClientError('Unauthenticated', 'the sign-in was cancelled', { cause });
  if (error === 'expired_token')
    return new ClientError('Unauthenticated', 'the code has expired; start again', { cause });
  if (typeof code === 'string' && refusal.test(code)) {
    const { message: detail } = (inner ?? {}) as { message?: unknown };
    const reason = [text, error, detail, message].find((each) => typeof each === 'string') as string;
    return new ClientError('Unauthenticated', `the provider's answer was refused: ${reason}`, { cause });
  }
  const options = { cause, headers: { 'retry-after': '5' } };
  return new ClientError('Unavailable', 'the OpenID Connect provider does not answer; sign in with a token', options);
}
