import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { findBusyPort } from './ports.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-ports-'));
const setting = 'CLOUDYARD_NFS_PORT';
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  rmSync(dataDir, { recursive: true, force: true });
});

async function listen(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

async function listening(): Promise<number> {
  const { server, port } = await listen();
  cleanups.push(() => server.close());
  return port;
}

async function free(): Promise<number> {
  const { server, port } = await listen();
  await once(server.close(), 'close');
  return port;
}

describe('findBusyPort', () => {
  it('returns null for free ports, and for ports that no setting changes', async () => {
    const ports = [
      { daemon: 'NFS', port: await free(), host: '127.0.0.1', setting },
      { daemon: 'rpcbind', port: await listening() },
    ];
    expect(await findBusyPort(ports, dataDir)).toBeNull();
  });

  it('names the program that uses the port, and a command with a free port', async () => {
    const port = await listening();
    const busy = await findBusyPort([{ daemon: 'NFS', port, host: '127.0.0.1', setting }], dataDir);
    expect(busy).toMatchObject({
      port,
      detail: expect.stringMatching(new RegExp(`^port ${port} is in use by .* \\(process ${process.pid}\\)$`)),
      remedy: expect.stringMatching(/^CLOUDYARD_NFS_PORT=\d+ npm start$/),
    });
    const proposed = Number(/\d+/.exec(busy!.remedy.slice(setting.length))?.[0]);
    expect(await findBusyPort([{ daemon: 'NFS', port: proposed, host: '127.0.0.1', setting }], dataDir)).toBeNull();
  });

  it('names the service that the Debian package of the program has started, and the command that ends it', async () => {
    const port = await listening();
    const ports = [{ daemon: 'NFS', port, host: '127.0.0.1', setting, packageService: 'nfs-ganesha.service' }];
    expect(await findBusyPort(ports, dataDir, () => 'nfs-ganesha.service')).toMatchObject({
      detail: expect.stringMatching(/ \(process \d+\), nfs-ganesha\.service of its Debian package$/),
      remedy: 'sudo systemctl disable --now nfs-ganesha.service && npm start',
    });
    // The operator runs another service there.
    for (const service of ['nfs-kernel-server.service', null]) {
      const busy = await findBusyPort(ports, dataDir, () => service);
      expect(busy!.remedy).toMatch(/^CLOUDYARD_NFS_PORT=/);
    }
  });

  it('ignores a daemon of this data directory, which a start adopts', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-ports-daemon-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const port = await free();
    const log = openSync(join(folder, 'daemon.log'), 'a');
    const program = `require('net').createServer().listen(${port}, '127.0.0.1', () => process.send('listening'))`;
    const daemon = spawn(process.execPath, ['-e', program], { stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    cleanups.push(async () => {
      daemon.kill('SIGKILL');
      await once(daemon, 'exit');
    });
    await once(daemon, 'message');
    const ports = [{ daemon: 'NFS', port, host: '127.0.0.1', setting }];
    expect(await findBusyPort(ports, folder)).toBeNull();
    expect(await findBusyPort(ports, dataDir)).toMatchObject({ port });
  });
});
