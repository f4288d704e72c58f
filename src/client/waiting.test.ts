import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { exitCodes } from './errors.ts';
import { createApi } from './http.ts';
import { waitForTasks } from './waiting.ts';

it('a server that accepts requests and never answers does not extend the timeout', async () => {
  const server = createServer(() => {});
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const api = createApi({ url, token: undefined, project: '1', region: '1' });
  const waiting = waitForTasks(api, ['a', 'b'], 0.2, { update: () => {}, clear: () => {} });
  await expect(waiting).rejects.toMatchObject({
    message: 'timed out after 0.2 s; still running: a, b',
    exitCode: exitCodes.timedOut,
  });
}, 20_000);
