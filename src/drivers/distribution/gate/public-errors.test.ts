import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { publicErrors } from './public-errors.ts';

const storage = { DriverName: 'filesystem', Enclosed: { Op: 'stat', Path: '/srv/x', Err: 40 } };
const failed = { code: 'UNKNOWN', message: 'unknown error', detail: storage };
const missing = { code: 'MANIFEST_BLOB_UNKNOWN', message: 'blob unknown to registry', detail: 'sha256:ab' };

/** A response of distribution, in parts of 2 KiB. */
function answerOf(statusCode: number, body: string, type = 'application/json; charset=utf-8'): IncomingMessage {
  const parts = body.match(/[^]{1,2048}/g)?.map((part) => Buffer.from(part)) ?? [];
  const answer = Readable.from(parts, { objectMode: false });
  return Object.assign(answer, { statusCode, headers: { 'content-type': type } }) as unknown as IncomingMessage;
}

const bodyOf = (errors: object[]) => `${JSON.stringify({ errors })}\n`;
const sent = (errors: object[]) => publicErrors(answerOf(400, bodyOf(errors)));

it.each([
  [500, JSON.stringify({ errors: [failed] }), 'application/json; charset=utf-8'],
  [502, '/srv/x is missing', 'text/plain'],
])('replaces a response %i', async (status, body, type) => {
  const message = 'internal error; see the log of distribution on the server';
  await expect(publicErrors(answerOf(status, body, type))).rejects.toMatchObject({ status, code: 'UNKNOWN', message });
});

it('omits only the details of unknown errors from other responses', async () => {
  const { detail: _, ...rest } = failed;
  expect(await sent([missing, rest, failed, missing])).toBe(bodyOf([missing, rest, rest, missing]));
  const denied = { code: 'UNAUTHORIZED', message: 'authentication required', detail: [{ Type: 'repository' }] };
  expect(await sent([denied])).toBe(bodyOf([denied]));
});

it('omits errors after the first 64 KiB, and a longer detail', async () => {
  const many = await sent([...Array.from({ length: 5000 }, () => missing), failed]);
  const count = many!.split(missing.detail).length - 1;
  expect(count).toBeGreaterThan(400);
  expect(many).toBe(bodyOf(Array.from({ length: count }, () => missing)));
  const long = { code: 'MANIFEST_INVALID', message: 'manifest invalid', detail: 'x'.repeat(100_000) };
  expect(await sent([long])).toBe(bodyOf([{ code: 'MANIFEST_INVALID', message: 'manifest invalid' }]));
});

it.each([
  [200, '{"name":"a","tags":[]}', 'application/json; charset=utf-8'],
  [416, 'invalid range: failed to overlap', 'text/plain; charset=utf-8'],
])('leaves a response %i unchanged', async (status, body, type) => {
  expect(await publicErrors(answerOf(status, body, type))).toBeNull();
});
