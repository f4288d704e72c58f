/**
 * Run in namespaces of its own, with an rpcbind: registers NFSv3 and two versions of NLM as servers of root would, of which
 * one lives, and starts Ganesha. Prints the registered TCP ports and the status of the driver as JSON.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { run } from '../command.ts';
import { testHost } from './test-host.ts';

const [nfs, otherProgram] = [100_003, 100_021];
const deadPort = 2999;

/** PMAPPROC_SET. From a port below 1024, so that the registration belongs to root. */
async function register(program: number, version: number, port: number, localPort: number): Promise<void> {
  const words = [1, 0, 2, 100_000, 2, 1, 0, 0, 0, 0, program, version, 6, port];
  const message = Buffer.alloc(4 + words.length * 4);
  message.writeUInt32BE(0x8000_0000 + words.length * 4, 0);
  words.forEach((word, index) => message.writeUInt32BE(word, 4 + index * 4));
  const socket = connect({ host: '127.0.0.1', port: 111, localPort });
  socket.write(message);
  await once(socket, 'data');
  socket.destroy();
}

const living = createServer();
await once(living.listen(0, '127.0.0.3'), 'listening');
const livingPort = (living.address() as AddressInfo).port;
await register(nfs, 3, deadPort, 700);
await register(otherProgram, 1, livingPort, 701);
await register(otherProgram, 3, deadPort, 702);
const host = await testHost();
const driver = host.driver();
try {
  await driver.start();
  const registered = await run('rpcinfo', ['-p', '127.0.0.1']);
  console.log(JSON.stringify({ registered, port: host.port, livingPort, status: driver.status() }));
} finally {
  await driver.stop();
  host.cleanUp();
  living.close();
}
