import type { IncomingMessage, ServerResponse } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Layout } from '../layout.ts';
import { newFolders } from '../test-host.ts';
import type { Forward, Forwarding } from './forward.ts';
import { Refusal } from './refusal.ts';
import { createRepairs } from './repairs.ts';
import { type Target, targetOf } from './target.ts';
import { checkUploads } from './watch.ts';
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

type Send = (forwarding: Forwarding) => Promise<void>;
const noHead = () => Promise.reject(new Error('the connection was closed'));

/** Handles a request that `send` forwards. `head`: the response of distribution to HEAD. */
const write = (method: string, to: Target, limit: number, send: Send, head: () => Promise<object> = noHead) => {
  const forward = (_request: IncomingMessage, _response: ServerResponse, forwarding: Forwarding) => send(forwarding);
  const writes = createWrites({
    layout,
    forward: Object.assign(forward, { head }) as Forward,
    repairFor: createRepairs(layout),
    grantOf: async () => ({ mayPush: true, limit, issuedAt: 1 }),
    isShared: false,
    patience: 60,
    isDiskFull: () => diskFull,
  });
  const request = { method, headers: {} } as IncomingMessage;
  const handled = writes.handle(request, {} as ServerResponse, to);
  return { handled, writes, used: () => writes.accountOf('app-1').used() };
};

/** Handles a PATCH whose body consists of the parts that `send` admits. */
const patch = (limit: number, send: (admit: NonNullable<Forwarding['admit']>) => Promise<void>) =>
  write('PATCH', target, limit, ({ admit }) => send(admit!));

const lost = new Refusal(503, 'UNAVAILABLE', 'the client closed the connection');
/** Distribution responds with this status, or does not: null. */
const answered = async ({ onAnswer }: Forwarding, status: number | null) => {
  if (status === null) throw lost;
  await onAnswer?.(Object.assign(Readable.from([]), { statusCode: status, headers: {} }) as IncomingMessage);
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

describe('the completion of an upload', () => {
  it('counts its bytes without a response, too', async () => {
    const { handled, writes, used } = write('PUT', target, 10 * mib, async (forwarding) => {
      await forwarding.admit!(part);
      forwarding.onSent!();
      throw lost;
    });
    await expect(handled).rejects.toBe(lost);
    await checkUploads(layout, writes);
    expect([used(), writes.accountOf('app-1').uploads.size]).toEqual([part, 0]);
  });
});

describe('a mount', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const mount = targetOf(`/v2/app-1/a/blobs/uploads/?mount=${digest}&from=other-2/b`)!;
  const found = async () => ({ statusCode: 200, headers: { 'content-length': `${mib}` } });

  it.each([
    [null, mib],
    [201, mib],
    [500, mib],
    [202, 0],
    [404, 0],
  ])('with the response %s of distribution counts %i bytes', async (status, bytes) => {
    const { handled, used } = write('POST', mount, 10 * mib, (forwarding) => answered(forwarding, status), found);
    await handled.catch((error: unknown) => expect(error).toBe(lost));
    expect(used()).toBe(bytes);
  });

  it.each([
    ['a blob of unknown size', noHead, '/v2/app-1/a/blobs/uploads/'],
    ['a blob that cannot be read', async () => ({ statusCode: 500 }), '/v2/app-1/a/blobs/uploads/'],
    ['a missing blob', async () => ({ statusCode: 404 }), '/v2/app-1/a/blobs/uploads/'],
    ['a blob that the client may not read', async () => ({ statusCode: 401 }), mount.url],
    ['a blob', found, mount.url],
  ])('of %s is forwarded only if its bytes are counted or it is refused', async (_of, head, url) => {
    const urls: string[] = [];
    await write('POST', mount, 10 * mib, async (forwarding) => void urls.push(forwarding.url), head).handled;
    expect(urls).toEqual([url]);
  });
});

describe('a manifest', () => {
  it.each([
    [null, 500],
    [201, 500],
    [500, 500],
    [400, 0],
  ])('with the response %s of distribution counts %i bytes', async (status, bytes) => {
    const manifest = targetOf('/v2/app-1/a/manifests/v1')!;
    const { handled, used } = write('PUT', manifest, 10 * mib, async (forwarding) => {
      await forwarding.admit!(500);
      await answered(forwarding, status);
    });
    await handled.catch((error: unknown) => expect(error).toBe(lost));
    expect(used()).toBe(bytes);
  });

  it('above 4 MiB is rejected with 413 and counts nothing', async () => {
    const manifest = targetOf('/v2/app-1/a/manifests/v1')!;
    const { handled, used } = write('PUT', manifest, 10 * mib, ({ admit }) => sendForever(admit!, () => {}));
    await expect(handled).rejects.toMatchObject({ status: 413, code: 'MANIFEST_INVALID' });
    expect(used()).toBe(0);
  });
});
