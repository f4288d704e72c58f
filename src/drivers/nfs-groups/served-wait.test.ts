import { expect, it } from 'vitest';
import type { GroupRecords, ServerRecord } from './records.ts';
import { servedWait } from './served-wait.ts';

const signal = new AbortController().signal;

/** Waits for a share of 2 GiB of a group with this one server. */
const waitFor = (record: ServerRecord) => {
  const records = { servers: async () => new Map([['h1/1', record]]) } as unknown as GroupRecords;
  return servedWait(records, 0)('10.77.2.1', 'a', { stamp: 'stamp', sizeGib: 2, signal });
};
const server: ServerRecord = { host: 'h1', serving: true, shares: { a: 'stamp' }, sizes: {} };

it('a share is served when its server shows the size', async () => {
  await waitFor({ ...server, sizes: { a: 2 } });
  await expect(waitFor({ ...server, sizes: { a: 1 } })).rejects.toThrow('does not serve the new state');
  await expect(waitFor(server)).rejects.toThrow('does not serve the new state');
});
