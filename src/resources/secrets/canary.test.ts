/** Secret payloads appear in no column, log line or response, whether requests succeed or fail. */
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { dumpTables } from '../../../test/table-dump.ts';
import { aCertificate, aKey, secretV1 } from './test-certificates.ts';

const lines: string[] = [];
const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
const cloud = useCloudyard({ log });

const rsa = aCertificate({ key: aKey('rsa') });
const ec = aCertificate();
const passphrase = 'canary-9f3b2c6d-passphrase';
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Pieces of the secret texts, short enough to be found in truncated or escaped text. */
const canaries = [rsa.keyPem, ec.keyPem, passphrase].flatMap((text) => {
  const pieces = text.split('\n').filter((line) => line.length > 20 && !line.startsWith('-----'));
  return pieces.map((piece) => piece.slice(0, 24));
});

/** Each piece as text, as its base64-decoded bytes, and both in the byte notations of PostgreSQL and JSON. */
const encodings = canaries.flatMap((canary) => {
  const bytes = [Buffer.from(canary), Buffer.from(canary, 'base64')];
  return [canary, ...bytes.map((b) => b.toString('hex')), base64(canary).slice(0, 30), bytes[1]!.toString('latin1')];
});

function expectNoCanary(where: string, text: string): void {
  for (const canary of encodings) if (text.includes(canary)) throw new Error(`${where} contains ${canary}`);
}

const v2 = (payload: object) => ({ name: 'canary', payload });

describe('the payload of a secret', () => {
  it('does not appear in responses, logs or the database', async () => {
    const client = await cloud.newClient();
    const options = { token: client.token, headers: { 'idempotency-key': 'once' } };
    const [of1, of2] = ['v1', 'v2'].map((v) => `/cloud/${v}/secrets/${client.projectId}/1`) as [string, string];
    const answers: { status: number; body: unknown; headers: unknown }[] = [];
    const post = async (path: string, body: unknown, more: object = { token: client.token }) =>
      answers.push(await cloud.post(path, body, more)) && answers.at(-1)!.status;

    const valid = { certificate: rsa.pem, certificate_chain: '', private_key: rsa.keyPem };
    expect(await post(of2, v2(valid), options)).toBe(200);
    expect(await post(of1, secretV1('certificate', ec.pem + ec.keyPem))).toBe(200);
    expect(await post(of1, secretV1('private', ec.keyPem))).toBe(200);
    for (const type of ['opaque', 'passphrase', 'symmetric'])
      expect(await post(of1, secretV1(type, passphrase))).toBe(200);

    expect(await post(of2, v2(valid), { ...options, headers: { 'idempotency-key': 'once' } })).toBe(200);
    expect(await post(of2, v2({ ...valid, certificate: ec.pem }))).toBe(400);
    expect(await post(of2, v2({ ...valid, certificate: rsa.keyPem, certificate_chain: ec.keyPem }))).toBe(400);
    expect(await post(of2, v2({ ...valid, private_key: rsa.keyPem.slice(0, -40) }))).toBe(400);
    expect(await post(of2, { name: 'x', payload: { key: rsa.keyPem }, private_key: ec.keyPem })).toBe(400);
    expect(await post(of1, secretV1(rsa.keyPem, passphrase))).toBe(400);
    expect(await post(of1, { ...secretV1('private', ''), payload: passphrase })).toBe(400);
    expect(await post(of1, secretV1('certificate', passphrase))).toBe(400);
    const headers = { authorization: `apikey ${client.token}`, 'content-type': 'application/json' };
    const broken = await cloud.app.inject({ method: 'POST', url: of2, headers, payload: `{"payload": ${rsa.keyPem}` });
    answers.push({ status: broken.statusCode, body: broken.body, headers: broken.headers });

    await cloud.db.$client.query('alter table secrets add constraint never check (false) not valid');
    expect(await post(of2, v2(valid))).toBe(500);
    await cloud.db.$client.query('alter table secrets drop constraint never');

    answers.push(await cloud.get(of1, { token: client.token }));
    expect((answers.at(-1)!.body as { count: number }).count).toBe(6);
    for (const { body } of [...answers]) {
      const [task] = (body as { tasks?: string[] }).tasks ?? [];
      if (task) answers.push(await cloud.get(`/cloud/v1/tasks/${task}`, { token: client.token }));
    }
    answers.push(await cloud.get('/metrics'));

    expectNoCanary('a response', JSON.stringify(answers));
    expectNoCanary('the log', lines.join(''));
    expect(lines.some((line) => line.includes('request failed'))).toBe(true);
    const tables = await dumpTables(cloud.db);
    expect(tables.map(([table]) => table)).toEqual(expect.arrayContaining(['public.secrets', 'public.tasks']));
    for (const [table, text] of tables) expectNoCanary(table, text);
    expect(await cloud.services.secrets.pemOf(cloud.db, await ids())).toSatisfy(
      (pems: Map<string, string>) => pems.size === 2,
    );
  });
});

async function ids(): Promise<string[]> {
  const { rows } = await cloud.db.$client.query<{ id: string }>('select id from secrets');
  return rows.map((row) => row.id);
}
