import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { listen } from './listen.ts';
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
