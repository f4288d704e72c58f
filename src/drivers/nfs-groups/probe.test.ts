import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { exportSizes, probeExports } from './probe.ts';

const NOENT = 2;
let server: Server;

interface Result {
  operations: number;
  status: number;
  /** The last 64 bits of the results. */
  end?: bigint;
}

/** A server that answers each call with this result; null: never. */
async function serving(results: (Result | null)[]): Promise<number> {
  server = createServer((socket) => {
    let received = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      received = Buffer.concat([received, data]);
      while (received.length >= 4) {
        const end = 4 + (received.readUInt32BE(0) & 0x7fff_ffff);
        if (received.length < end) return;
        const xid = received.readUInt32BE(4);
        received = received.subarray(end);
        const result = results[xid];
        if (!result) continue;
        const reply = Buffer.alloc(4 + 36 + 8);
        reply.writeBigUInt64BE(result.end ?? 0n, 4 + 36);
        [0x8000_0000 + 36 + 8, xid, 1, 0, 0, 0, 0, result.status, 0, result.operations].forEach((word, at) =>
          reply.writeUInt32BE(word, at * 4),
        );
        socket.write(reply);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}
const targetAt = (port: number) => ({ address: '127.0.0.1', port, timeoutMs: 1000 });
const probe = (port: number, ids: string[]) => probeExports(targetAt(port), ids);

afterEach(() => server.close());

describe('the probe of exports', () => {
  it('accepts an export whose storage says that the name does not exist', async () => {
    const port = await serving([{ operations: 4, status: NOENT }]);
    expect(await probe(port, ['a'])).toEqual(new Set(['a']));
  });

  it('rejects a missing export, a failing one and a silent one', async () => {
    const port = await serving([
      { operations: 3, status: NOENT },
      { operations: 4, status: 10_006 },
      null,
      { operations: 4, status: NOENT },
    ]);
    expect(await probe(port, ['missing', 'failing', 'silent', 'good'])).toEqual(new Set(['good']));
  });

  it('fails if nothing responds', async () => {
    const port = await serving([null]);
    await expect(probe(port, ['a'])).rejects.toThrow('no response in 1000 ms');
  });
});

it('the size of an export is known if it responds', async () => {
  const port = await serving([
    { operations: 4, status: 0, end: 5_368_709_120n },
    { operations: 3, status: NOENT },
    null,
  ]);
  const sizes = await exportSizes(targetAt(port), ['good', 'missing', 'silent']);
  expect(sizes).toEqual(new Map([['good', 5_368_709_120]]));
});
