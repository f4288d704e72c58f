import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLab, type Lab, type LabNode, labWorks } from './lab.ts';

describe.skipIf(!labWorks())('hosts as network namespaces', () => {
  let lab: Lab;
  let h1: LabNode;
  let h2: LabNode;
  let client: LabNode;

  beforeAll(async () => {
    lab = await createLab({ hosts: 2 });
    [h1, h2] = lab.hosts as [LabNode, LabNode];
    client = lab.clients[0]!;
  });
  afterAll(() => lab.remove());

  /** Whether `from` reaches `to`, by IPv4 and by IPv6. */
  const reaches = async (from: LabNode, to: LabNode) => {
    const answers = await Promise.all(
      [to.address, to.address6].map((address) =>
        from.run('ping', ['-c', '1', '-W', '1', '-n', address]).then(
          () => true,
          () => false,
        ),
      ),
    );
    expect(answers[0], 'IPv4 and IPv6 are the same').toBe(answers[1]);
    return answers[0];
  };

  it('reach each other by IPv4 and IPv6', async () => {
    expect(await reaches(client, h1)).toBe(true);
    expect(await reaches(h1, h2)).toBe(true);
  });

  it('are separated and joined again', async () => {
    await lab.partition([h1, client], [h2]);
    expect(await reaches(client, h1)).toBe(true);
    expect(await reaches(h1, h2)).toBe(false);
    await lab.isolate([h1, h2]);
    expect(await reaches(client, h1)).toBe(true);
    expect(await reaches(h1, h2)).toBe(false);
    await lab.heal();
    expect(await reaches(h1, h2)).toBe(true);
  });

  it('die with all processes, and come back without their addresses', async () => {
    await h2.run('ip', ['addr', 'add', '10.77.1.1/32', 'dev', h2.interface]);
    const process = h2.spawn('sh', ['-c', 'setsid sleep 1000 & exec sleep 1000']);
    await expect.poll(() => h2.pids().length).toBe(2);
    const exited = once(process, 'exit');
    await h2.die();
    await exited;
    expect(h2.pids()).toEqual([]);
    expect(await reaches(client, h2)).toBe(false);
    await h2.boot();
    expect(await reaches(client, h2)).toBe(true);
    expect(await h2.addresses()).toEqual([h2.address, h2.address6]);
  });

  it('have a /run of their own, and listen on addresses that they do not have', async () => {
    await h1.run('sh', ['-c', 'echo one >/run/name']);
    await expect(h2.run('cat', ['/run/name'])).rejects.toThrow('No such file');
    for (const address of ['10.77.1.1', 'fd00:77:0:1::1']) {
      const script = `require('net').createServer().listen(80, '${address}', () => process.exit(0))`;
      await h1.run(process.execPath, ['-e', script]);
    }
  });

  it('reach a server of this machine that the lab forwards', async () => {
    const server = createServer((_, response) => void response.end('hello')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await lab.forward(5000, `127.0.0.1:${(server.address() as AddressInfo).port}`);
    const { address, address6 } = lab.services;
    for (const host of [address, `[${address6}]`]) {
      const { stdout } = await h1.run('curl', ['-s', `http://${host}:5000/`]);
      expect(stdout).toBe('hello');
    }
    server.close();
  });

  it('end with the process that made them, even if it is killed', async () => {
    const script = `
      import { createLab } from ${JSON.stringify(join(import.meta.dirname, 'lab.ts'))};
      const { hosts: [host] } = await createLab({ hosts: 1 });
      host.spawn('sleep', ['1000'], { detached: true });
      console.log(host.namespace, host.folder);`;
    const owner = spawn(process.execPath, ['--input-type=module', '--eval', script]);
    const [line] = (await once(owner.stdout, 'data')) as [Buffer];
    const [namespace, folder] = line.toString().trim().split(' ') as [string, string];
    const pidsIn = () => execFileSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8', stdio: 'pipe' });
    await expect.poll(pidsIn, { timeout: 10_000 }).not.toBe('');
    owner.kill('SIGKILL');
    await expect.poll(() => existsSync(dirname(folder)), { timeout: 30_000 }).toBe(false);
    expect(pidsIn).toThrow('No such file');
  }, 60_000);
});
