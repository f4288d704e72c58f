import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { liveProcess } from '../../platform/running-processes.ts';
import { silentLogger } from '../../platform/log.ts';
import { groupServer, watched } from './server.ts';
import type { PublishedShare } from './share-state.ts';

/** A program that runs as Ganesha does, and an `ip` that writes down its arguments. */
async function watchedProgram(seconds: number) {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-'));
  const [validUntil, removed] = [join(folder, 'valid-until'), join(folder, 'removed')];
  const mayRunFor = (ms: number) => writeFileSync(validUntil, `${Math.floor(uptime() * 100 + ms / 10)}\n`);
  writeFileSync(join(folder, 'ip'), `#!/bin/sh\necho "$@" > ${removed}\n`);
  chmodSync(join(folder, 'ip'), 0o700);
  mayRunFor(seconds * 1000);
  const { file, args } = watched(validUntil, ['addr', 'del', '10.77.2.1/32'], ['sleep', '60']);
  const { pid } = spawn(file, args, { stdio: 'ignore', env: { PATH: `${folder}:${process.env['PATH']}` } });
  onTestFinished(() => {
    if (liveProcess(pid!)) process.kill(pid!, 'SIGKILL');
    rmSync(folder, { recursive: true });
  });
  // From then on the watcher runs.
  await expect.poll(() => liveProcess(pid!)?.commandLine).toBe('sleep 60');
  return {
    mayRunFor,
    end: () => process.kill(pid!, 'SIGKILL'),
    isRunning: () => liveProcess(pid!) !== null,
    removed: () => (existsSync(removed) ? readFileSync(removed, 'utf8') : null),
  };
}

const removal = 'addr del 10.77.2.1/32\n';

it('a server whose agent is frozen ends with its time, and so does its address', async () => {
  const program = await watchedProgram(0.5);
  await expect.poll(program.removed, { timeout: 5000 }).toBe(removal);
  await expect.poll(program.isRunning).toBe(false);
});

it('the address of a server that ended with its agent is removed when its time is over', async () => {
  const program = await watchedProgram(1);
  program.end();
  await expect.poll(program.removed, { timeout: 5000 }).toBe(removal);
});

it('the address of a server that ended alone stays, because its agent starts another one', async () => {
  const program = await watchedProgram(1);
  program.end();
  await sleep(400);
  program.mayRunFor(1000);
  await sleep(1500);
  expect(program.removed()).toBeNull();
});

/** Answers every call as an export does that works (probe.test.ts). */
async function respondingPort(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const reply = Buffer.alloc(40);
      const words = [0x8000_0000 + 36, data.readUInt32BE(4), 1, 0, 0, 0, 0, 2, 0, 4];
      words.forEach((word, at) => reply.writeUInt32BE(word, at * 4));
      socket.write(reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

it('a server that waits for the cluster before it starts again is ended without it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [program, cephConf] = [join(folder, 'ganesha.nfsd'), join(folder, 'cluster.conf')];
  writeFileSync(program, '#!/bin/sh\nwhile :; do sleep 1; done\n', { mode: 0o700 });
  writeFileSync(cephConf, '');
  const waits = Promise.withResolvers<void>();
  let starts = 0;
  const server = groupServer({
    settings: {
      ...{ regionId: 1, group: '127.0.0.1', port: await respondingPort(), pool: 'volumes', user: 'cloudyard' },
      ...{ cephConf, clientConf: join(folder, 'ceph.conf') },
    },
    ...{ folder, program, removal: ['-V'], log: silentLogger },
    async beforeStart() {
      if (++starts === 1) return;
      waits.resolve();
      await new Promise(() => {});
    },
  });
  server.mayServeFor(60_000);
  await server.start(new Map([['a', { access: [] as unknown[] } as PublishedShare]]));
  server.restart();
  await waits.promise;
  await server.kill();
  expect(server.isUp()).toBe(false);
});
