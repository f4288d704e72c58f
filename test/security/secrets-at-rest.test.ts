/**
 * Secrets of every kind, as a user of a real server creates them: none is in the log, the metrics, the traces, the audit log,
 * responses to invalid requests that contain it, the rows as a dump has them, the files of `cloudyard backup`, or those that the
 * documented copy of the data directory archives (docs/guides/backup-and-restore.md), which include PostgreSQL's write-ahead log.
 * The key file is excluded, and the token that a start prints. `child-processes.test.ts` covers core dumps.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { bootstrapToken, openYard, type Yard } from '../processes.ts';
import { openTraceReceiver, type TraceReceiver } from '../tracing-receiver.ts';

let yard: Yard;
let receiver: TraceReceiver | undefined;
afterAll(async () => {
  yard?.cleanUp();
  await receiver?.stop();
});

const keyFile = 'secret.keys';
const given = { payload: 'canary-71c4e0-payload', password: 'canary-71c4e0-password', header: 'canary-71c4e0-header' };

/** Creates one secret of each kind. Returns the secrets by kind. */
async function createSecrets(): Promise<Record<string, string>> {
  const once = (kind: string) => ({ headers: { 'idempotency-key': `create the ${kind}` } });
  const created = async (kind: string, path: string, body: object) => {
    const answer = await yard.post(path, body, once(kind));
    expect([kind, answer.status < 300 || answer.body]).toEqual([kind, true]);
    return answer;
  };
  await created('secret', '/cloud/v1/secrets/1/1', {
    ...{ name: 'first', secret_type: 'passphrase', payload: Buffer.from(given.payload).toString('base64') },
    ...{ payload_content_encoding: 'base64', payload_content_type: 'application/octet-stream' },
  });
  await created('pull secret', '/cloud/v1/caas/secrets/1/1', {
    ...{ name: 'first', registry: 'registry.example.com', login: 'ci', password: given.password },
  });
  await created('subscription', '/cloud/v1/user_actions/subscribe', {
    ...{ url: 'https://siem.example.com/', auth_header_name: 'Authorization', auth_header_value: given.header },
  });
  const webhook = await created('webhook', '/cloudyard/v1/clients/1/webhooks', { url: 'https://hooks.example.com/' });
  const key = await created('API key', '/cloud/v1/caas/keys/1/1', {
    ...{ name: 'first', containers: [{ name: 'web', namespace: 'default' }] },
  });
  const token = await created('token', '/cloudyard/v1/tokens', { name: 'first', role: 'reader' });
  const registry = await created('registry', '/cloud/v1/registries/1/1', { name: 'first', storage_limit: 1 });
  const users = `/cloud/v1/registries/1/1/${registry.body.id}/users`;
  const user = await created('registry user', users, { name: 'ci', duration: 30, read_only: false });
  const session = await fetch(`${yard.url}/cloudyard/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: bootstrapToken }),
  });
  const [cookie = ''] = session.headers.getSetCookie();
  return {
    ...given,
    webhook: webhook.body.secret,
    'API key': key.body.secret,
    // The id before the dollar sign is public.
    token: token.body.token.split('$').at(-1),
    'registry user': user.body.secret,
    session: /=([^;]*)/.exec(cookie)![1]!.split('$').at(-1)!,
  };
}

/** Sends invalid requests that contain the secrets. Returns the responses. */
async function provokeErrors(secrets: Record<string, string>): Promise<string> {
  const opaque = { payload_content_encoding: 'base64', payload_content_type: 'nonsense' };
  const payload = Buffer.from(given.payload).toString('base64');
  const refused: [string, object][] = [
    ['/cloud/v1/secrets/1/1', { name: 'second', secret_type: 'passphrase', payload, ...opaque }],
    ['/cloud/v1/secrets/1/1', { name: 'second', secret_type: given.payload, payload }],
    ['/cloud/v1/caas/secrets/1/1', { name: given.password, registry: 'r', login: 1, password: given.password }],
    ['/cloud/v1/user_actions/subscribe', { url: 'nonsense', auth_header_name: ':', auth_header_value: given.header }],
    ['/cloudyard/v1/session', { token: `1$${secrets['token']}` }],
  ];
  const answers = await Promise.all(refused.map(([path, body]) => yard.post(path, body)));
  for (const [at, { status }] of answers.entries()) {
    expect([refused[at]![0], status >= 400 && status < 500]).toEqual([refused[at]![0], true]);
  }
  return JSON.stringify(answers.map(({ body }) => body));
}

/** Every secret as text, hexadecimal and base64, by kind. */
function encodingsOf(secrets: Record<string, string>): [string, string][] {
  return Object.entries(secrets).flatMap(([kind, secret]) => {
    expect([kind, String(secret).length >= 10]).toEqual([kind, true]);
    const bytes = Buffer.from(secret);
    // base64 without the end, which depends on the text behind it.
    return [secret, bytes.toString('hex'), bytes.toString('base64').slice(0, -4)].map(
      (text) => [kind, text] as [string, string],
    );
  });
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== keyFile)
    .map(({ parentPath, name }) => join(parentPath, name));
}

/** All rows as text, as a dump has them. */
async function dumpTables(): Promise<string> {
  const tables = await yard.sql<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  const texts = [];
  for (const { name } of tables) {
    const rows = await yard.sql<{ text: string }>(`select t::text as text from ${name} t`);
    texts.push(...rows.map(({ text }) => text));
  }
  return texts.join('\n');
}

/** The files of `cloudyard backup`, decompressed. */
async function backUp(): Promise<Record<string, string>> {
  const folder = join(yard.folder, 'backups');
  expect((await yard.run(['backup', '--to', folder])).code).toBe(0);
  const contentOf = (file: string) => {
    const bytes = readFileSync(file);
    return (file.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes).toString('latin1');
  };
  return Object.fromEntries(
    filesBelow(folder).map((file) => [`cloudyard backup: ${file.slice(folder.length)}`, contentOf(file)]),
  );
}

describe('secrets of every kind', () => {
  it('are in no log, metric, trace, error, audit entry, dump or backup', { timeout: 300_000 }, async () => {
    receiver = await openTraceReceiver();
    yard = await openYard({
      ...{ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_LOG_LEVEL: 'trace' },
      CLOUDYARD_OTLP_ENDPOINT: receiver.endpoint,
    });
    const server = await yard.start(['start']);
    const secrets = await createSecrets();
    const encodings = encodingsOf(secrets);
    const places: Record<string, string> = {
      'the errors': await provokeErrors(secrets),
      metrics: JSON.stringify((await yard.get('/metrics', { token: null })).body),
      'the audit log': JSON.stringify((await yard.get('/cloudyard/v1/audit?limit=1000')).body),
      'the actions of users': JSON.stringify((await yard.get('/cloud/v1/user_actions?limit=1000')).body),
      'a dump': await dumpTables(),
      ...(await backUp()),
    };
    expect(places['the audit log']).toContain('createPullSecret');
    expect(places['a dump']).toContain('createPullSecret');
    const backup = Object.entries(places).filter(([place]) => place.startsWith('cloudyard backup'));
    expect(backup.some(([, text]) => text.includes('createPullSecret'))).toBe(true);
    const { code, stdout, stderr } = await server.stop();
    expect(code).toBe(0);
    places['the log'] = stdout + stderr;
    places['the traces'] = JSON.stringify(receiver.spans);
    expect(places['the traces']).toContain('createPullSecret');
    const files = filesBelow(yard.dataDir);
    expect(files.some((file) => file.includes('/pg_wal/'))).toBe(true);
    for (const file of files) places[`the backup's ${file.slice(yard.dataDir.length)}`] = readFileSync(file, 'latin1');
    const found = Object.entries(places).flatMap(([place, text]) =>
      encodings.filter(([, secret]) => text.includes(secret)).map(([kind]) => `${place}: ${kind}`),
    );
    expect(found).toEqual([]);
  });
});
