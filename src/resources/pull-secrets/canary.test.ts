/** A password of a pull secret appears in no column, log line, metric or response except dockerconfigjson. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer } from '../../drivers/registry-login/test-registry.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { dumpTables } from '../../../test/table-dump.ts';
import { createVerifyLogin } from '../../drivers/registry-login/login.ts';

const lines: string[] = [];
const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
const cloud = useCloudyard({ driver: null, log, verifyNetworks: ['127.0.0.0/8'] });
let registry: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  registry = await startTestServer();
});
afterAll(() => registry.stop());

const passwords = ['canary-5d1f0a7c-first', 'canary-5d1f0a7c-other', 'canary-5d1f0a7c-wrong'];
const login = 'canary-login';
/** Each password as text, in hex, and in base64 at each offset and together with the login. */
const encodings = passwords.flatMap((password) => [
  password,
  Buffer.from(password).toString('hex'),
  ...['', ' ', '  ', `${login}:`].map((head) =>
    Buffer.from(head + password)
      .toString('base64')
      .slice(4 + head.length, -4),
  ),
]);

function expectNoCanary(where: string, text: string): void {
  for (const canary of encodings) if (text.includes(canary)) throw new Error(`${where} contains ${canary}`);
}

describe('a password', () => {
  it('appears only in dockerconfigjson, never in other responses, logs or the database', async () => {
    const client = await cloud.newClient();
    const options = { token: client.token };
    const secrets = `/cloud/v1/caas/secrets/${client.projectId}/1`;
    const ours = secrets.replace('/cloud/', '/cloudyard/');
    const answers: unknown[] = [];
    const record = async <T extends { status: number }>(answer: Promise<T>): Promise<number> => {
      const got = await answer;
      answers.push(got);
      return got.status;
    };
    const [first, other, wrong] = passwords as [string, string, string];
    const valid = { name: 'a', registry: registry.authority, login, password: first };
    const once = { ...options, headers: { 'idempotency-key': 'once' } };
    expect(await record(cloud.post(secrets, valid, once))).toBe(200);
    expect(await record(cloud.post(secrets, valid, once))).toBe(200);
    expect(await record(cloud.post(secrets, { ...valid, login: 'x' }, once))).toBe(409);
    expect(await record(cloud.post(secrets, valid, options))).toBe(409);
    expect(await record(cloud.patch(`${secrets}/a`, { password: other }, options))).toBe(200);
    expect(await record(cloud.patch(`${secrets}/none`, { password: other }, options))).toBe(404);
    for (const bad of [{ password: wrong.repeat(300) }, { pasword: wrong }, { name: wrong, password: [wrong] }]) {
      expect(await record(cloud.post(secrets, { ...valid, name: 'b', ...bad }, options))).toBe(400);
    }
    const url = `https://${login}:${wrong}@registry.test`;
    expect(await record(cloud.post(secrets, { ...valid, name: 'b', registry: url }, options))).toBe(400);
    const headers = { authorization: `apikey ${client.token}`, 'content-type': 'application/json' };
    const broken = await cloud.app.inject({ method: 'POST', url: secrets, headers, payload: `{"password": ${wrong}` });
    answers.push(broken.body);

    await cloud.db.$client.query('alter table pull_secrets add constraint never check (false) not valid');
    expect(await record(cloud.post(secrets, { ...valid, name: 'c' }, options))).toBe(500);
    expect(await record(cloud.patch(`${secrets}/a`, { password: first }, options))).toBe(500);
    await cloud.db.$client.query('alter table pull_secrets drop constraint never');

    // Registries that echo the credentials that they receive.
    const echo = (status: number, fields: object) =>
      registry.answer((request, response) => {
        const echoed = `${String(request.headers.authorization)} ${other}`;
        response
          .writeHead(status, { ...fields, 'x-echoed': echoed, location: `http://127.0.0.1:1/${other}` })
          .end(echoed);
      });
    const challenges = [
      'Basic realm="x"',
      `Bearer realm="http://${registry.authority}/token",service="${other}"`,
      `Bearer realm="${other}"`,
      `Bearer realm="http://me:${other}@127.0.0.1/"`,
      `${other} realm="x"`,
    ];
    for (const challenge of challenges) {
      echo(401, { 'www-authenticate': challenge });
      expect(await record(cloud.post(`${ours}/a/verify`, undefined, options))).toBe(200);
    }
    for (const status of [200, 302, 403, 500]) {
      echo(status, {});
      expect(await record(cloud.post(`${ours}/a/verify`, undefined, options))).toBe(200);
    }
    const verify = createVerifyLogin({ networks: ['127.0.0.0/8'], isOwn: () => false });
    answers.push(await verify({ authority: '127.0.0.1:1' }, { login, password: other }));

    answers.push(await cloud.get(secrets, options), await cloud.get(`${secrets}/a`, options));
    answers.push(await cloud.get('/cloudyard/v1/audit', options), await cloud.get('/metrics'));
    const file = await cloud.get(`${ours}/a/dockerconfigjson`, options);
    expect(file.body.auths[registry.authority]).toMatchObject({ username: login, password: other });

    const { rows } = await cloud.db.$client.query('select password from pull_secrets');
    await cloud.db.$client.query(`update pull_secrets set password = '\\x00'`);
    expect(await record(cloud.get(`${ours}/a/dockerconfigjson`, options))).toBe(500);
    expect(await record(cloud.post(`${ours}/a/verify`, undefined, options))).toBe(500);
    expect(await record(cloud.patch(`${secrets}/a`, { password: first }, options))).toBe(200);
    expect(rows).toHaveLength(1);

    expectNoCanary('a response', JSON.stringify(answers));
    expectNoCanary('the log', lines.join(''));
    expect(lines.some((line) => line.includes('request failed'))).toBe(true);
    const tables = await dumpTables(cloud.db);
    const seen = ['public.pull_secrets', 'public.audit_entries', 'public.idempotency_keys'];
    expect(tables.map(([table]) => table)).toEqual(expect.arrayContaining(seen));
    for (const [table, text] of tables) expectNoCanary(table, text);
    expect(registry.requests.some(({ headers }) => headers.authorization?.startsWith('Basic '))).toBe(true);
  });
});
