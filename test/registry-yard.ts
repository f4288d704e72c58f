/** A Cloudyard with real registries, and raw registry requests as an attacker sends them. */
import { execFileSync } from 'node:child_process';
import { accountFor } from '../src/drivers/confined.ts';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { type Layout, layoutOf } from '../src/drivers/distribution/layout.ts';
import { openYard, type Running, type Yard } from './processes.ts';
import { until } from './until.ts';

interface TestRegistry {
  id: number;
  path: string;
  /** `host:port/prefix` */
  url: string;
  prefix: string;
}

export interface Reply {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
  /** Code and message of the first error. */
  code: string | undefined;
  message: string | undefined;
}

interface CallOptions {
  token?: string | null;
  body?: string | Buffer;
  headers?: Record<string, string>;
}

export type RegistryYard = Awaited<ReturnType<typeof openRegistryYard>>;

export async function openRegistryYard(settings: Record<string, string> = {}) {
  const port = await freePort();
  const yard: Yard = await openYard({
    CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    CLOUDYARD_REGISTRY_DRIVER: 'distribution',
    CLOUDYARD_REGISTRY_PORT: String(port),
    CLOUDYARD_SWEEP_SECONDS: '1',
    ...settings,
  });
  const layout: Layout = layoutOf(yard.dataDir);
  const server: Running = await yard.start(['start']);
  const all = '/cloud/v1/registries/1/1';
  const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`;

  const start = (method: string, path: string, { token, headers }: CallOptions, answered?: (reply: Reply) => void) => {
    const options = { host: '127.0.0.1', port, method, path, agent: false as const };
    const authorization = token ? { authorization: `Bearer ${token}` } : {};
    return httpRequest({ ...options, headers: { ...authorization, ...headers } }, (answer) => {
      let text = '';
      answer.setEncoding('latin1').on('data', (part: string) => (text += part));
      answer.on('end', () => answered?.(replyOf(answer, text)));
    });
  };

  const call = (method: string, path: string, options: CallOptions = {}): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const sent = start(method, path, options, resolve);
      sent.on('error', reject);
      sent.end(options.body);
    });

  return {
    yard,
    server,
    layout,
    port,
    call,
    /** Starts a request whose body the test sends. */
    begin: start,

    async make(name: string) {
      const { body } = await yard.post(all, { name });
      const path = `${all}/${body.id}`;
      await yard.post(`${path}/users/batch`, { users: [{ name: 'ci', duration: -1, secret: `pw-${name}` }] });
      return { id: body.id, path, url: body.url, prefix: body.url.split('/')[1] } as TestRegistry;
    },

    async login(credentials: string, scopes: string[]) {
      const query = new URLSearchParams({ service: 'cloudyard:1' });
      for (const scope of scopes) query.append('scope', scope);
      const answer = await fetch(`${yard.url}/cloudyard/v1/registry_token?${query}`, {
        headers: { authorization: basic(credentials) },
      });
      return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Record<string, string> };
    },

    /** Gets a token for all actions on repositories. */
    async tokenFor(credentials: string, ...names: string[]): Promise<string> {
      const scopes = names.map((name) => `repository:${name}:pull,push,delete`);
      return (await this.login(credentials, scopes)).body['token']!;
    },

    /** Starts an upload. Returns its path with query, and its id. */
    async beginUpload(token: string, name: string) {
      const reply = await call('POST', `/v2/${name}/blobs/uploads/`, { token });
      const location = String(reply.headers.location ?? '');
      return { reply, location, id: String(reply.headers['docker-upload-uuid']) };
    },

    /** Stores a blob, as a push does. */
    async putBlob(token: string, name: string, bytes: string | Buffer) {
      const digest = digestOf(bytes);
      const { location, reply } = await this.beginUpload(token, name);
      if (reply.status !== 202) return { digest, reply };
      const path = `${location}${location.includes('?') ? '&' : '?'}digest=${digest}`;
      return { digest, reply: await call('PUT', path, { token, body: bytes }) };
    },

    /** Resolves when garbage collection has removed a blob that is stored now and that no manifest names. */
    async garbageCollected(token: string, name: string): Promise<void> {
      const { digest } = await this.putBlob(token, name, randomBytes(16));
      const path = `/v2/${name}/blobs/${digest}`;
      await until(async () => (await call('HEAD', path, { token })).status === 404, 60, 'garbage collection');
    },

    putManifest: (token: string, name: string, reference: string, manifest: object | string) =>
      call('PUT', `/v2/${name}/manifests/${reference}`, {
        token,
        body: typeof manifest === 'string' ? manifest : JSON.stringify(manifest),
        headers: { 'content-type': ociManifest },
      }),

    /** Creates an unfinished upload of this size as a sparse file. */
    fillWithUpload(name: string, bytes: number, id = '00000000-0000-4000-8000-000000000000') {
      const folder = join(layout.repositories, name, '_uploads', id);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'data'), '');
      writeFileSync(join(folder, 'startedat'), new Date().toISOString());
      truncateSync(join(folder, 'data'), bytes);
      const account = accountFor('registry');
      // The same owner as files of distribution.
      if (account) execFileSync('chown', ['-R', `${account.uid}:${account.gid}`, layout.storage]);
    },

    bytesIn,
    cleanUp: () => yard.cleanUp(),
  };
}

const ociManifest = 'application/vnd.oci.image.manifest.v1+json';

export function digestOf(bytes: string | Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** A manifest with a configuration and layers. */
export function manifestOf(config: string, layers: { digest: string; size: number }[], more: object = {}) {
  return {
    schemaVersion: 2,
    mediaType: ociManifest,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: digestOf(config), size: config.length },
    layers: layers.map((each) => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...each })),
    ...more,
  };
}

function replyOf({ statusCode, headers }: IncomingMessage, text: string): Reply {
  let first: { code?: string; message?: string } | undefined;
  try {
    first = (JSON.parse(text) as { errors?: { code: string; message: string }[] }).errors?.[0];
  } catch {
    // Not an error.
  }
  return { status: statusCode!, headers, text, code: first?.code, message: first?.message };
}

/** Sum of the file sizes below a folder, without files and folders that are removed meanwhile. */
export function bytesIn(folder: string): number {
  const entries = (path: string) => {
    try {
      return readdirSync(path, { withFileTypes: true });
    } catch {
      return [];
    }
  };
  return entries(folder).reduce((sum, each) => {
    const path = join(folder, each.name);
    if (each.isDirectory()) return sum + bytesIn(path);
    return sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  }, 0);
}
