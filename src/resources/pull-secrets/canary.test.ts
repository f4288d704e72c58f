/** A password of a pull secret is in no column, no log line, no metric and no answer but the one file that is for it. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFakeRegistry } from '../../drivers/registry-login/test-registry.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { createVerifyLogin } from '../../drivers/registry-login/login.ts';

const lines: string[] = [];
const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
const cloud = useCloudyard({ driver: null, log, verifyNetworks: ['127.0.0.0/8'] });
let standIn: Awaited<ReturnType<typeof startFakeRegistry>>;
beforeAll(async () => {
  standIn = await startFakeRegistry();
});
afterAll(() => standIn.stop());

const passwords = ['canary-5d1f0a7c-first', 'canary-5d1f0a7c-other', 'canary-5d1f0a7c-wrong'];
const login = 'canary-login';
/** As text, and as what the text is written as: base64 at each offset, hex, percent-encoded, and together with the login. */
const disguises = passwords.flatMap((password) => [
  password,
  Buffer.from(password).toString('hex'),
  ...['', ' ', '  ', `${login}:`].map((head) =>
    Buffer.from(head + password)
      .toString('base64')
      .slice(4 + head.length, -4),
  ),
]);

function expectNoCanary(where: string, text: string): void {
  for (const canary of disguises) if (text.includes(canary)) throw new Error(`${where} shows ${canary}`);
}

describe('a password', () => {
  it('is not seen anywhere', async () => {
    const client = await cloud.newClient();
    const options = { token: client.token };
    const secrets = `/cloud/v1/caas/secrets/${client.projectId}/1`;
    const ours = secrets.replace('/cloud/', '/cloudyard/');
    const answers: unknown[] = [];
    const note = async <T extends { status: number }>(answer: Promise<T>): Promise<number> => {
      const got = await answer;
      answers.push(got);
      return got.status;
    };
    const [first, other, wrong] = passwords as [string, string, string];
    const sound = { name: 'a', registry: standIn.authority, login, password: first };
    const once = { ...options, headers: { 'idempotency-key': 'once' } };
    expect(await note(cloud.post(secrets, sound, once))).toBe(200);
    expect(await note(cloud.post(secrets, sound, once))).toBe(200);
    expect(await note(cloud.post(secrets, { ...sound, login: 'x' }, once))).toBe(409);
    expect(await note(cloud.post(secrets, sound, options))).toBe(409);
    expect(await note(cloud.patch(`${secrets}/a`, { password: other }, options))).toBe(200);
    expect(await note(cloud.patch(`${secrets}/none`, { password: other }, options))).toBe(404);
    for (const bad of [{ password: wrong.repeat(300) }, { pasword: wrong }, { name: wrong, password: [wrong] }]) {
      expect(await note(cloud.post(secrets, { ...sound, name: 'b', ...bad }, options))).toBe(400);
    }
    const url = `https://${login}:${wrong}@registry.test`;
    expect(await note(cloud.post(secrets, { ...sound, name: 'b', registry: url }, options))).toBe(400);
    const headers = { authorization: `apikey ${client.token}`, 'content-type': 'application/json' };
    const broken = await cloud.app.inject({ method: 'POST', url: secrets, headers, payload: `{"password": ${wrong}` });
    answers.push(broken.body);

    await cloud.db.$client.query('alter table pull_secrets add constraint never check (false) not valid');
    expect(await note(cloud.post(secrets, { ...sound, name: 'c' }, options))).toBe(500);
    expect(await note(cloud.patch(`${secrets}/a`, { password: first }, options))).toBe(500);
    await cloud.db.$client.query('alter table pull_secrets drop constraint never');

    // Registries that say what they were told.
    const echo = (status: number, fields: object) =>
      standIn.answer((request, response) => {
        const told = `${String(request.headers.authorization)} ${other}`;
        response.writeHead(status, { ...fields, 'x-told': told, location: `http://127.0.0.1:1/${other}` }).end(told);
      });
    const challenges = [
      'Basic realm="x"',
      `Bearer realm="http://${standIn.authority}/token",service="${other}"`,
      `Bearer realm="${other}"`,
      `Bearer realm="http://me:${other}@127.0.0.1/"`,
      `${other} realm="x"`,
    ];
    for (const challenge of challenges) {
      echo(401, { 'www-authenticate': challenge });
      expect(await note(cloud.post(`${ours}/a/verify`, undefined, options))).toBe(200);
    }
    for (const status of [200, 302, 403, 500]) {
      echo(status, {});
      expect(await note(cloud.post(`${ours}/a/verify`, undefined, options))).toBe(200);
    }
    const verify = createVerifyLogin({ networks: ['127.0.0.0/8'], isOwn: () => false });
    answers.push(await verify({ authority: '127.0.0.1:1' }, { login, password: other }));

    answers.push(await cloud.get(secrets, options), await cloud.get(`${secrets}/a`, options));
    answers.push(await cloud.get('/cloudyard/v1/audit', options), await cloud.get('/metrics'));
    const file = await cloud.get(`${ours}/a/dockerconfigjson`, options);
    expect(file.body.auths[standIn.authority]).toMatchObject({ username: login, password: other });

    const { rows } = await cloud.db.$client.query('select password from pull_secrets');
    await cloud.db.$client.query(`update pull_secrets set password = '\\x00'`);
    expect(await note(cloud.get(`${ours}/a/dockerconfigjson`, options))).toBe(500);
    expect(await note(cloud.post(`${ours}/a/verify`, undefined, options))).toBe(500);
    expect(await note(cloud.patch(`${secrets}/a`, { password: first }, options))).toBe(200);
    expect(rows).toHaveLength(1);

    expectNoCanary('an answer', JSON.stringify(answers));
    expectNoCanary('the log', lines.join(''));
    expect(lines.some((line) => line.includes('request failed'))).toBe(true);
    for (const [table, text] of await everything()) expectNoCanary(table, text);
    expect(standIn.received.some(({ headers }) => headers.authorization?.startsWith('Basic '))).toBe(true);
  });
});

/** All rows of all tables, as text. */
async function everything(): Promise<[string, string][]> {
  const { rows: tables } = await cloud.db.$client.query<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  const seen = ['public.pull_secrets', 'public.audit_entries', 'public.idempotency_keys'];
  expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(seen));
  const texts: [string, string][] = [];
  for (const { name } of tables) {
    const { rows } = await cloud.db.$client.query<{ text: string }>(`select to_jsonb(t)::text as text from ${name} t`);
    texts.push([name, rows.map((row) => row.text).join('\n')]);
  }
  return texts;
}
