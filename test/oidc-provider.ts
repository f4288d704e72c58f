/** A conformant OpenID Connect provider for tests, which signs in whom the test names: at once, or with a form. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { Provider } from 'oidc-provider';

interface TestPerson {
  sub: string;
  email: string;
  groups: string[];
}

export interface TestProvider {
  issuer: string;
  /** Who signs in next. */
  person: TestPerson;
  /** Called when it has made tokens, before it sends them. */
  beforeTokens(): void;
  /** Whether it publishes other keys than it signs with. */
  publishesOtherKeys: boolean;
  /** Follows a URL as the browser of the person, until it leaves the provider. Returns where it leads. */
  visit(url: string): Promise<string>;
  /** Confirms a device as the person. */
  confirm(verificationUri: string): Promise<void>;
  stop(): Promise<void>;
}

/** Signs in the person of the test. */
const loginForm = `<!doctype html><html lang="en"><title>Sign in at the provider</title>
<link rel="icon" href="data:,"><form method="post"><button>Sign in at the provider</button></form></html>`;

/** How long ID tokens are valid. */
export const idTokenSeconds = 60;

export const testClient = { clientId: 'cloudyard', clientSecret: 'secret-of-the-client' };

interface ProviderOptions {
  /** Another address of the loopback network is another site for browsers. */
  address?: string;
  /** Whether a person signs in with a form. */
  hasForm?: boolean;
}

export async function openProvider(
  redirectUri: string,
  { address = '127.0.0.1', hasForm = false }: ProviderOptions = {},
): Promise<TestProvider> {
  const [key, otherKey] = [await newKey('own'), await newKey('own')];
  const server = createServer();
  server.listen(0, address);
  await once(server, 'listening');
  const issuer = `http://${address}:${(server.address() as AddressInfo).port}`;
  const state = {
    person: { sub: 'ada', email: 'ada@example.org', groups: [] as string[] },
    beforeTokens: () => {},
    publishesOtherKeys: false,
  };
  const provider = new Provider(issuer, {
    clients: [
      {
        ...{ client_id: testClient.clientId, client_secret: testClient.clientSecret, redirect_uris: [redirectUri] },
        grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
      },
    ],
    jwks: { keys: [key] },
    claims: { openid: ['sub'], email: ['email'], groups: ['groups'] },
    scopes: ['openid', 'email', 'groups'],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false }, deviceFlow: { enabled: true } },
    cookies: { keys: ['test'] },
    ttl: { IdToken: idTokenSeconds },
    interactions: { url: (_context, { uid }) => `/login/${uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: async () => ({ ...state.person, sub }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ accountId: oidc.session!.accountId!, clientId: oidc.client!.clientId });
      grant.addOIDCScope('openid email groups');
      await grant.save();
      return grant;
    },
  });
  const handle = provider.callback();
  server.on('request', (request, response) => {
    const path = request.url!.split('?')[0]!;
    if (path.startsWith('/login/') && hasForm && request.method === 'GET') {
      response.setHeader('content-type', 'text/html').end(loginForm);
    } else if (path.startsWith('/login/')) {
      void provider.interactionFinished(request, response, { login: { accountId: state.person.sub } });
    } else if (path === '/jwks' && state.publishesOtherKeys) {
      const { d: _, ...published } = otherKey;
      response.setHeader('content-type', 'application/jwk-set+json').end(JSON.stringify({ keys: [published] }));
    } else {
      const end = response.end.bind(response);
      if (path === '/token') {
        response.end = ((...args: Parameters<typeof end>) => {
          state.beforeTokens();
          return end(...args);
        }) as typeof response.end;
      }
      void handle(request, response);
    }
  });

  /** Requests a URL with the cookies of a browser, and follows redirects within the provider. */
  const browse = async (
    cookies: Map<string, string>,
    url: string,
    form?: Record<string, string>,
  ): Promise<Response> => {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      cookies.set(name!, value!);
    }
    const location = response.headers.get('location');
    if (location === null) return response;
    const next = new URL(location, issuer).href;
    return next.startsWith(issuer) ? browse(cookies, next) : response;
  };

  return Object.assign(state, {
    issuer,
    async visit(url: string) {
      const response = await browse(new Map(), url);
      const location = response.headers.get('location');
      if (location === null) throw new Error(`the provider answered ${response.status}: ${await response.text()}`);
      return location;
    },
    async confirm(verificationUri: string) {
      const cookies = new Map<string, string>();
      const html = await (await browse(cookies, verificationUri)).text();
      const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(html)?.[1] ?? '';
      const code = new URL(verificationUri).searchParams.get('user_code')!;
      const form = { xsrf: field('xsrf'), user_code: code, confirm: 'yes' };
      await browse(cookies, `${issuer}/device`, form);
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

async function newKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' };
}
