/**
 * Run in namespaces of its own: while another program has the port of rpcbind, as an rpcbind that ends or starts does, asks
 * for an rpcbind. Then the same of two data directories at once, of which the first to respond stops. Prints what was seen.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '../../platform/log.ts';
import { holderOf } from '../ports.ts';
import { findProgram } from '../programs.ts';
import { rpcbindFor } from './rpcbind.ts';

const port = 111;
const newRpcbind = () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-rpcbind-'));
  process.once('exit', () => rmSync(folder, { recursive: true }));
  return rpcbindFor(findProgram('rpcbind'), { ganesha: folder, runtime: folder }, silentLogger);
};

// Ends when it has been asked several times, so that one that is started after the first question misses the port.
let questions = 0;
const ending = createServer((socket) => {
  socket.destroy();
  questions += 1;
  if (questions === 5) ending.close();
});
await once(ending.listen(port), 'listening');
const alone = newRpcbind();
const afterAnother = await alone.ensure();
await alone.stop();

const both = [newRpcbind(), newRpcbind()];
const atOnce = await Promise.all(both.map((rpcbind) => rpcbind.ensure()));
const holder = holderOf(port)?.name;
for (const rpcbind of both) await rpcbind.stop();
console.log(JSON.stringify({ afterAnother, atOnce, holder, left: holderOf(port) }));
