import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { manifestFault } from './error-causes.ts';

const unknown = '{"code":"UNKNOWN","message":"unknown error"}';
const withDetail = (detail: string) => `{"code":"UNKNOWN","message":"unknown error","detail":${detail}}`;
const notFound = (digest: string) =>
  `{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry","detail":${JSON.stringify(digest)}}`;
const errors = (...each: string[]) => `{"errors":[${each.join(',')}]}\n`;
const storage = '{"DriverName":"filesystem","Enclosed":{"Op":"stat","Path":"/x","Err":5}}';

it.each([
  [errors(withDetail('{}')), 'schemaVersion must be 2'],
  [errors(unknown, withDetail('{}'), notFound('sha999:ab')), 'the digest or the urls of sha999:ab are malformed'],
  [
    errors(unknown, withDetail('{}'), ...Array.from({ length: 50_000 }, (_, i) => notFound(`sha999:${i}`))),
    'the digest or the urls of sha999:0 are malformed',
  ],
  [
    errors(unknown, withDetail('{}'), notFound(`sha256:${'a'.repeat(5000)}`)),
    'the digest or the urls of a descriptor are malformed',
  ],
  [errors(unknown, withDetail('{}'), notFound('x\u001B"')), 'the digest or the urls of a descriptor are malformed'],
  [errors(withDetail(storage)), null],
  [errors(unknown, withDetail(storage), notFound('sha256:ab')), null],
  [errors('{"code":"UNAVAILABLE","message":"service unavailable"}'), null],
  ['Bad Gateway', null],
  ['', null],
])('of the response %.120s is %s, and the response keeps its body', async (body, fault) => {
  const answer = Readable.from(body.match(/[^]{1,2048}/g)?.map((part) => Buffer.from(part)) ?? [], {
    objectMode: false,
  });
  expect(await manifestFault(answer)).toBe(fault);
  expect(await text(answer)).toBe(body);
});
