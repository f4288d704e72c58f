/**
 * Run in namespaces of its own: starts Ganesha with an rpcbind, and kills the rpcbind. Prints the registrations before, and those
 * that rpcbind has within 30 s, as JSON.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { liveProcess } from '../../platform/running-processes.ts';
import { run } from '../command.ts';
import { layoutOf } from './layout.ts';
import { testHost } from './test-host.ts';

/** Program, version and address of the registrations over IPv4. */
const registered = async () =>
  (await run('rpcinfo', ['-p', '127.0.0.1']).catch(() => ''))
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([program, , network]) => program !== '100000' && network === 'tcp')
    .map(([program, version, , port]) => `${program} ${version} ${port}`)
    .sort();

const host = await testHost();
const driver = host.driver();
try {
  await driver.start();
  const before = await registered();
  const rpcbind = Number(readFileSync(join(layoutOf(host.dataDir).runtime, 'rpcbind.pid'), 'utf8'));
  process.kill(rpcbind, 'SIGKILL');
  while (liveProcess(rpcbind)) await sleep(10);
  let after: string[] = [];
  for (let polls = 0; polls < 300 && after.length < before.length; polls += 1) {
    await sleep(100);
    after = await registered();
  }
  console.log(JSON.stringify({ before, after }));
} finally {
  await driver.stop();
  host.cleanUp();
}
