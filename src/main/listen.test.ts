import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import { expect, it, onTestFinished, vi } from 'vitest';
import { listen, listenOnceFree } from './listen.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';

it.each([
  ['CLOUDYARD_PORT', true],
  ['CLOUDYARD_WORKER_PORT', false],
])('waits for the port of %s, which a process that was just killed may still hold', async (setting, serves) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => holder.once('listening', resolve));
  const { port } = holder.address() as AddressInfo;
  const app = Fastify();
  onTestFinished(() => app.close());
  const settings = readSettings({ [setting]: String(port) }, checkoutPlaces(process.cwd()), false);
  const listening = listen(app as never, settings, serves);
  await sleep(300);
  holder.close();
  expect(await listening).toBe(`http://127.0.0.1:${port}`);
});

const address = 'CLOUDYARD_HOST is "10.9.9.9"; it must be an address of this machine, or a name of one';
const unresolved =
  'CLOUDYARD_HOST is "10.9.9.9", which cannot be resolved at the moment; check the DNS of this machine';
const lowPort =
  'port 80 on 10.9.9.9 requires the capability CAP_NET_BIND_SERVICE (AmbientCapabilities= of a systemd unit); set CLOUDYARD_PORT to a port from 1024, or run as root';
const highPort = 'this machine does not allow port 8080 on 10.9.9.9; set CLOUDYARD_PORT to another one';

it.each([
  ['EADDRNOTAVAIL', address, address],
  ['ENOTFOUND', address, address],
  ['EAI_AGAIN', unresolved, unresolved],
  ['EACCES', lowPort, highPort],
])('names the setting to change after %s', async (code, atPort80, atDefaultPort) => {
  const app = { listen: () => Promise.reject(Object.assign(new Error('listen'), { code })) };
  const listenWith = (port: { CLOUDYARD_PORT?: string }) =>
    listen(
      app as never,
      readSettings({ CLOUDYARD_HOST: '10.9.9.9', ...port }, checkoutPlaces(process.cwd()), false),
      true,
    );
  await expect(listenWith({ CLOUDYARD_PORT: '80' })).rejects.toThrow(atPort80);
  await expect(listenWith({})).rejects.toThrow(atDefaultPort);
});

it('starts another kind of server when its port is free, and names its setting when it stays busy', async () => {
  const place = { host: '127.0.0.1', port: 80, setting: 'CLOUDYARD_HTTP_REDIRECT_PORT' };
  const busy = Object.assign(new Error('listen'), { code: 'EADDRINUSE' });
  const start = vi.fn<() => Promise<string>>().mockRejectedValueOnce(busy).mockResolvedValue('started');
  expect(await listenOnceFree(place, start)).toBe('started');
  const now = vi.spyOn(performance, 'now');
  onTestFinished(() => now.mockRestore());
  now.mockReturnValueOnce(0).mockReturnValue(60_000);
  await expect(listenOnceFree(place, () => Promise.reject(busy))).rejects.toThrow(
    'port 80 on 127.0.0.1 is in use by another program; set CLOUDYARD_HTTP_REDIRECT_PORT to a free one',
  );
});
