import type { IncomingMessage, ServerResponse } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Layout } from '../layout.ts';
import { newFolders } from '../test-host.ts';
import type { Forward, Forwarding } from './forward.ts';
import { targetOf } from './target.ts';
import { createWrites } from './writes.ts';

const mib = 1024 ** 2;
const part = 64 * 1024;
const id = '11bf66e2-f917-4a4e-b536-230a1b2c3d4e';
const target = targetOf(`/v2/app-1/a/blobs/uploads/${id}`)!;

let layout: Layout;
let diskFull: boolean;

beforeEach(async () => {
  layout = await newFolders();
  diskFull = false;
});

/** Handles a PATCH whose body consists of the parts that `send` admits. */
const patch = (limit: number, send: (admit: NonNullable<Forwarding['admit']>) => Promise<void>) => {
  const forward = async (_request: IncomingMessage, _response: ServerResponse, { admit }: Forwarding) => send(admit!);
  const writes = createWrites({
    layout,
    forward: Object.assign(forward, { head: () => Promise.reject(new Error('unused')) }) as Forward,
    grantOf: async () => ({ mayPush: true, limit, issuedAt: 1 }),
    isShared: false,
    patience: 60,
    isDiskFull: () => diskFull,
  });
  const request = { method: 'PATCH', headers: {} } as IncomingMessage;
  const handled = writes.handle(request, {} as ServerResponse, target);
  return { handled, used: () => writes.accountOf('app-1').used() };
};

/** Sends parts until one is refused. */
const sendForever = async (admit: NonNullable<Forwarding['admit']>, onAdmitted: () => void) => {
  for (;;) {
    await admit(part);
    onAdmitted();
  }
};

describe('the body of an upload', () => {
  it('is admitted synchronously while it is within the limit', async () => {
    const { handled, used } = patch(10 * mib, async (admit) => {
      for (let i = 0; i < 48; i += 1) expect(admit(part)).toBeNull();
    });
    await handled;
    expect(used()).toBe(3 * mib);
  });

  it('is rejected with 403 at the limit of the registry', async () => {
    let admitted = 0;
    const { handled } = patch(3 * mib, (admit) => sendForever(admit, () => (admitted += part)));
    await expect(handled).rejects.toMatchObject({ status: 403, code: 'DENIED' });
    expect(admitted).toBe(3 * mib);
  });

  it('is rejected with 507 within 1 MiB after the disk becomes full', async () => {
    let admitted = 0;
    const { handled } = patch(100 * mib, (admit) => {
      diskFull = true;
      return sendForever(admit, () => (admitted += part));
    });
    await expect(handled).rejects.toMatchObject({ status: 507, code: 'DENIED' });
    expect(admitted).toBeLessThan(mib);
  });

  it('is rejected with 404 within 1 MiB after the registry is deleted', async () => {
    let admitted = 0;
    const { handled } = patch(100 * mib, async (admit) => {
      await writeFile(layout.closed('app-1'), '');
      await sendForever(admit, () => (admitted += part));
    });
    await expect(handled).rejects.toMatchObject({ status: 404, code: 'NAME_UNKNOWN' });
    expect(admitted).toBeLessThan(mib);
  });
});
