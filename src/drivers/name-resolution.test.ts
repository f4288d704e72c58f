import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { addressesOf } from './name-resolution.ts';

function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-names-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'file'), text);
  return join(folder, 'file');
}

/** A name server that answers with one address for this name, with `unknown` for others, or not at all. Returns the queries. */
async function nameServer(known: string | null): Promise<{ servers: string[]; asked: string[] }> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (message, peer) => {
    const labels: string[] = [];
    let at = 12;
    for (; message[at] !== 0; at += message[at]! + 1)
      labels.push(message.toString('latin1', at + 1, at + 1 + message[at]!));
    asked.push(labels.join('.'));
    if (known === null) return;
    const isAnswered = labels.join('.') === known && message.readUInt16BE(at + 1) === 1;
    const header = Buffer.from(message.subarray(0, 12));
    header.writeUInt16BE(labels.join('.') === known ? 0x8180 : 0x8183, 2);
    for (const [offset, count] of [1, isAnswered ? 1 : 0, 0, 0].entries()) header.writeUInt16BE(count, 4 + offset * 2);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 10, 0, 0, 9]);
    const answer = [header, message.subarray(12, at + 5), ...(isAnswered ? [record] : [])];
    socket.send(Buffer.concat(answer), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return { servers: [`127.0.0.1:${socket.address().port}`], asked };
}

it('reads the hosts file first', async () => {
  const hostsFile = fileWith(
    '# comment\n127.0.0.1\tlocalhost\n10.0.0.7 Hook.internal hook # more\n::1 localhost\nnonsense hook\n',
  );
  const of = async (name: string) => (await addressesOf(name, { hostsFile })).map(({ address }) => address);
  expect(await of('localhost')).toEqual(['127.0.0.1', '::1']);
  expect(await of('HOOK.internal.')).toEqual(['10.0.0.7']);
  expect(await addressesOf('hook', { hostsFile })).toEqual([{ address: '10.0.0.7', family: 4 }]);
});

it('asks the name servers, also for the name in the search domains', async () => {
  const resolverFile = fileWith('nameserver 127.0.0.1\nsearch a.test b.test\n');
  const { servers, asked } = await nameServer('hook.team.b.test');
  const sources = { servers, resolverFile, hostsFile: fileWith('') };
  expect(await addressesOf('hook.team.b.test', sources)).toEqual([{ address: '10.0.0.9', family: 4 }]);
  expect(new Set(asked)).toEqual(new Set(['hook.team.b.test']));
  expect(await addressesOf('hook.team', sources)).toEqual([{ address: '10.0.0.9', family: 4 }]);
  asked.length = 0;
  expect(await addressesOf('hook.team.', sources)).toEqual([]);
  expect(new Set(asked)).toEqual(new Set(['hook.team']));
  expect(await addressesOf('hook', sources)).toEqual([]);
  expect([...new Set(asked)].slice(1)).toEqual(['hook.a.test', 'hook.b.test', 'hook']);
});

it('does not delay other names while name servers do not respond', async () => {
  const { servers } = await nameServer(null);
  const resolverFile = fileWith('');
  const names = Array.from({ length: 50 }, (_, i) => `x${i}.example`);
  const waiting = Promise.all(names.map((name) => addressesOf(name, { servers, resolverFile })));
  const began = performance.now();
  await lookup('localhost');
  expect(performance.now() - began).toBeLessThan(1000);
  expect((await waiting).flat()).toEqual([]);
  expect(performance.now() - began).toBeLessThan(10_000);
});
