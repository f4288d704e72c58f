/** Exports of the audit log: complete, streamed, and safe to open in a spreadsheet. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type RequestOptions, useCloudyard } from '../../../test/harness.ts';
import { exportText, formatOf } from './export.ts';
import type { AuditEntry } from './schema.ts';

const cloud = useCloudyard({ driver: null });
const log = '/cloudyard/v1/audit';

/** Writes many entries of a client at once. */
const insertEntries = (clientId: number, count: number) =>
  cloud.db.$client.query(
    `insert into audit_entries (at, client_id, operation, origin, changes)
     select now(), $1, 'createVolume', '{"address": "192.0.2.1"}',
            jsonb_build_array(jsonb_build_object('table', 'volumes', 'id', n::text, 'before', null, 'after', '{"size": 1}'::jsonb))
     from generate_series(1, $2::int) n`,
    [clientId, count],
  );

/** Parses CSV by the rules of RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? plain! : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

const exported = async (query: string, options: RequestOptions) => {
  const { status, headers, body } = await cloud.get(`${log}?${query}`, options);
  return { status, type: headers['content-type'], body: body as string };
};

describe('an export', () => {
  it('has every entry once, newest first, over many pages, without a limit', async () => {
    const client = await cloud.newClient();
    await insertEntries(client.clientId, 2500);
    const { type, body } = await exported('format=jsonl&table=volumes', client);
    expect(type).toBe('application/x-ndjson; charset=utf-8');
    const ids = body
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as AuditEntry).id);
    expect(ids).toHaveLength(2500);
    expect(ids).toEqual([...new Set(ids)].sort((one, other) => other - one));
    const lines = async (query: string) => (await exported(query, client)).body.trimEnd().split('\n');
    expect(await lines('format=jsonl&limit=7')).toHaveLength(7);
    expect(await lines(`format=jsonl&table=volumes&before=${ids[1000]}`)).toHaveLength(1499);
    expect(await lines('format=jsonl&row_id=17&table=volumes')).toHaveLength(1);
    expect(await lines('format=jsonl&row_id=17&table=networks')).toEqual(['']);
  });

  it('reads nothing for HEAD, whose response has no body', async () => {
    const client = await cloud.newClient();
    await insertEntries(client.clientId, 5000);
    const { $client: pool } = cloud.db;
    const query = pool.query.bind(pool);
    let reads = 0;
    pool.query = ((...args: Parameters<typeof query>) => {
      if (JSON.stringify(args[0]).includes('audit_entries')) reads += 1;
      return query(...args);
    }) as typeof query;
    const { status, headers, body } = await cloud.request('HEAD', `${log}?format=csv`, undefined, client);
    await sleep(500);
    pool.query = query;
    expect([status, headers['content-type'], body]).toEqual([200, 'text/csv; charset=utf-8; header=present', '']);
    expect(reads).toBeLessThan(2);
  });

  it('as CSV has the fields of the entry, and text that no spreadsheet runs', async () => {
    const client = await cloud.newClient();
    const agent = '=HYPERLINK("http://evil.example","click, here")';
    await cloud.post('/cloud/v1/projects', { name: 'first' }, { ...client, headers: { 'user-agent': agent } });
    await cloud.patch(`/cloud/v1/projects/${client.projectId}`, { description: 'line\r\nbreak' }, client);
    const { type, body } = await exported('format=csv', client);
    expect(type).toBe('text/csv; charset=utf-8; header=present');
    const [head, ...rows] = parseCsv(body);
    expect(head).toEqual([
      ...['id', 'at', 'operation', 'token_id', 'token_name', 'client_id', 'project_id', 'region_id', 'request_id'],
      ...['address', 'method', 'path', 'user_agent', 'forwarded_for', 'host', 'account', 'changes'],
    ]);
    const entries = rows.map((row) => Object.fromEntries(head!.map((name, i) => [name, row[i]])));
    const created = entries.find(({ operation }) => operation === 'createProject')!;
    expect(created).toMatchObject({ client_id: String(client.clientId), address: '127.0.0.1', method: 'POST' });
    expect(created['user_agent']).toBe(`'${agent}`);
    const page = (await cloud.get(log, client)).body.results as AuditEntry[];
    expect(entries.map(({ changes }) => JSON.parse(changes!))).toEqual(page.map(({ changes }) => changes));
    expect(entries.map(({ id }) => Number(id))).toEqual(page.map(({ id }) => id));
  });

  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '＝1', '＋1', '－1', '＠A1'])(
    'as CSV makes text of %j',
    async (name) => {
      const entry = { token: { id: 1, name }, origin: {}, changes: [] } as unknown as AuditEntry;
      let text = '';
      for await (const part of exportText(
        'csv',
        (async function* () {
          yield [entry];
        })(),
      ))
        text += part;
      expect(parseCsv(text)[1]![4]).toBe(`'${name}`);
    },
  );

  it('is chosen by the parameter, or else by Accept', async () => {
    const client = await cloud.newClient();
    await cloud.post('/cloud/v1/projects', { name: 'first' }, client);
    const typeFor = async (accept: string, query = '') =>
      (await exported(query, { ...client, headers: { accept } })).type;
    expect(await typeFor('text/csv')).toContain('text/csv');
    expect(await typeFor('application/x-ndjson, */*')).toContain('application/x-ndjson');
    expect(await typeFor('application/json, text/csv')).toContain('application/json;');
    expect(await typeFor('text/csv', 'format=json')).toContain('application/json;');
    expect(await typeFor('text/html', 'format=csv')).toContain('text/csv');
    expect(formatOf(undefined)).toBeUndefined();
    expect((await cloud.get(log, client)).body.results).toHaveLength(3);
    expect((await cloud.get(`${log}?format=xlsx`, client)).status).toBe(400);
    expect((await exported('format=csv&from_timestamp=2026-13-01T00:00:00Z', client)).status).toBe(400);
  });

  it('fails when its token is revoked meanwhile, so that it does not look complete', async () => {
    const { clientId, token } = await cloud.newClient();
    await insertEntries(clientId, 2500);
    const { tokens, auditLog } = cloud.services;
    const actor = (await tokens.check(token))!;
    const credential = { text: token, check: () => tokens.check(token) };
    const groups = auditLog.export({ actor, requestId: 'x', credential }, { table: 'volumes' });
    const ids: number[] = [];
    const read = async () => {
      for await (const group of groups) {
        if (ids.length === 0) await tokens.revoke(token);
        ids.push(...group.map(({ id }) => id));
      }
    };
    await expect(read()).rejects.toMatchObject({ code: 'Unauthenticated' });
    expect(ids.length).toBeGreaterThan(0);
    expect(ids.length).toBeLessThan(2500);
  });

  it('shows a client its own entries only, and needs an admin', async () => {
    const [client, other] = [await cloud.newClient(), await cloud.newClient()];
    await cloud.post('/cloud/v1/projects', { name: 'of the other client' }, other);
    expect((await exported('format=jsonl', client)).body).not.toContain('of the other client');
    expect((await exported('format=csv', other)).body).toContain('of the other client');
    expect((await exported('format=csv', {})).body).toContain('of the other client');
    const member = { token: await cloud.newToken(client.clientId, 'member') };
    expect((await exported('format=csv', member)).status).toBe(403);
  });
});
