/** Exports of a large audit log by a real server: complete, in constant memory, and at the speed of the reader. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const entries = 200_000;
/** MiB of the process. It measures 10 to 15; the text of an export is longer (asserted). */
const allowedGrowth = 48;
/** Without this, the runtime grows the heap by 100 MiB of garbage before it collects it, and then no further. */
const smallHeap = '--max-semi-space-size=16 --max-old-space-size=128';
const minimumText = 100;
const mebibyte = 1024 * 1024;

let yard: Yard;
let server: Running;

beforeAll(async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_PROCESSES: '1' });
  server = await yard.start(['serve'], { NODE_OPTIONS: smallHeap });
  // Adding each entry to the index of filters would take most of the CPU time of this file.
  const [filters] = await yard.sql<{ index: string }>(
    `select pg_get_indexdef('audit_entries_keys'::regclass) as index`,
  );
  await yard.sql('drop index audit_entries_keys');
  await yard.sql(
    `insert into audit_entries (at, client_id, operation, origin, changes)
     select now(), 1, 'createVolume', '{"address": "192.0.2.1"}', jsonb_build_array(jsonb_build_object(
       'table', 'volumes', 'id', n::text, 'before', null, 'after', jsonb_build_object('name', repeat('x', 400))))
     from generate_series(1, $1::int) n`,
    [entries],
  );
  await yard.sql(filters!.index);
  // As autovacuum does within a minute.
  await yard.sql('analyze audit_entries');
});
afterAll(() => yard?.cleanUp());

const memory = (field: 'VmRSS' | 'VmHWM') => {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)![1]) / 1024;
};
/** After an export of a tenth, which grows the heap to what it needs. VmHWM is the peak from here on. */
async function memoryAfter(format: string): Promise<number> {
  await drain(await open(format, `&before=${entries / 10}`));
  writeFileSync(`/proc/${server.pid}/clear_refs`, '5');
  return memory('VmRSS');
}

/** Clock ticks of the process so far. */
const ticks = () => {
  const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return Number(fields[11]) + Number(fields[12]);
};

async function open(format: string, more = ''): Promise<IncomingMessage> {
  const headers = { authorization: `apikey ${bootstrapToken}` };
  const request = get(`${yard.url}/cloudyard/v1/audit?format=${format}&operation=createVolume${more}`, {
    headers,
    agent: false,
  });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
  return answer;
}

/** Reads to the end. Returns the number of lines and of bytes. */
async function drain(answer: IncomingMessage): Promise<{ lines: number; bytes: number }> {
  const read = { lines: 0, bytes: 0 };
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    read.bytes += chunk.length;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) read.lines += 1;
  }
  return read;
}

describe('an export of 200,000 entries', () => {
  it.each([
    ['jsonl', entries],
    ['csv', entries + 1],
  ])('as %s is complete and needs constant memory', async (format, lines) => {
    const before = await memoryAfter(format);
    const read = await drain(await open(format));
    expect(read.lines).toBe(lines);
    expect(read.bytes).toBeGreaterThan(minimumText * mebibyte);
    expect(memory('VmHWM') - before).toBeLessThan(allowedGrowth);
  });

  it('waits for a reader that stops, without reading ahead', async () => {
    const before = await memoryAfter('jsonl');
    const answer = await open('jsonl');
    answer.pause();
    let [last, since] = [ticks(), performance.now()];
    const isIdle = () => {
      // Other duties of the server use some.
      if (ticks() - last > 5) [last, since] = [ticks(), performance.now()];
      return performance.now() - since > 1000;
    };
    await until(isIdle, 60, 'the server to wait for the reader');
    expect(memory('VmHWM') - before).toBeLessThan(allowedGrowth);
    // The rest of the text is neither on the connection nor in the memory of the server.
    expect(answer.socket.bytesRead).toBeLessThan(mebibyte);
    expect(await drain(answer)).toMatchObject({ lines: entries });
    expect(memory('VmHWM') - before).toBeLessThan(allowedGrowth);
  });
});
