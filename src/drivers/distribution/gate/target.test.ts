import { describe, expect, it } from 'vitest';
import { hasInvalidDigest, targetOf } from './target.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const id = '01234567-89ab-4cde-8f01-23456789abcd';

describe('targetOf', () => {
  it.each([
    ['/v2/', 'base', '/v2/'],
    ['/v2/_catalog?n=5', 'catalog', '/v2/_catalog'],
    ['/v2/app-1/a/tags/list?n=5&x=1', 'tags', '/v2/app-1/a/tags/list?n=5'],
    ['/v2/app-1/team/a/manifests/v1.0', 'manifest', '/v2/app-1/team/a/manifests/v1.0'],
    [`/v2/app-1/a/manifests/sha256%3A${'a'.repeat(64)}`, 'manifest', `/v2/app-1/a/manifests/${digest}`],
    [`/v2/app-1/a/blobs/${digest}`, 'blob', `/v2/app-1/a/blobs/${digest}`],
    ['/v2/app-1/a/blobs/uploads', 'uploads', '/v2/app-1/a/blobs/uploads/'],
    [`/v2/app-1/a/blobs/uploads/${id}?_state=x`, 'upload', `/v2/app-1/a/blobs/uploads/${id}?_state=x`],
    ['/v2/app-1/manifests/blobs/uploads/', 'uploads', '/v2/app-1/manifests/blobs/uploads/'],
  ])('parses %s as %s', (url, kind, rebuilt) => {
    expect(targetOf(url)).toMatchObject({ kind, url: rebuilt });
  });

  it('uses the first value of a repeated parameter', () => {
    const mount = (hex: string) => `mount=sha256:${hex.repeat(64)}`;
    const target = targetOf(`/v2/app-1/a/blobs/uploads/?${mount('a')}&${mount('b')}&from=other-2/b&from=app-1/b`);
    expect(target).toMatchObject({ prefix: 'app-1', repository: 'a', mount: `/v2/other-2/b/blobs/${digest}` });
    expect(target!.url).not.toContain('app-1%2Fb');
  });

  it('names the blob that a request mounts from another registry', () => {
    const mounted = (from: string) => targetOf(`/v2/app-1/a/blobs/uploads/?mount=${digest}${from}`)!.mount;
    expect(mounted('&from=app-12/b')).toBe(`/v2/app-12/b/blobs/${digest}`);
    for (const none of ['', '&from=app-1/b', '&from=../x', '&from=other-2/b%3fx']) expect(mounted(none)).toBeNull();
  });

  it.each([
    '/',
    '/v1/app-1/a/tags/list',
    'http://host/v2/app-1/a/tags/list',
    '/v2/app-1/tags/list',
    '/v2/app-1/../a/tags/list',
    '/v2/app-1//a/tags/list',
    '/v2/app-1/A/tags/list',
    '/v2/app-1/%61/tags/list',
    '/v2/app-1/a%2fb/tags/list',
    '/v2/app-1/_layers/tags/list',
    `/v2/app-1/${'a'.repeat(260)}/tags/list`,
    '/v2/app-1/a/manifests/..',
    '/v2/app-1/a/manifests/.hidden',
    '/v2/app-1/a/blobs/sha512:00',
    '/v2/app-1/a/blobs/uploads/..',
    '/v2/app-1/a/blobs/uploads/not-an-id',
    `/v2/app-1/a/blobs/uploads/${id}?digest=sha512:00`,
    '/v2/app-1/a/blobs/uploads/?mount=x',
    '/v2/app-1/a/tags/list\n',
  ])('returns null for %s', (url) => {
    expect(targetOf(url)).toBeNull();
  });
});

describe('hasInvalidDigest', () => {
  it.each([
    '/v2/app-1/a/manifests/sha256:short',
    `/v2/app-1/a/blobs/sha512:${'0'.repeat(128)}`,
    '/v2/app-1/a/blobs/sha512%3A00',
    `/v2/app-1/a/blobs/uploads/${id}?digest=sha512:00`,
    '/v2/app-1/a/blobs/uploads/?mount=x&from=app-1/b',
  ])('is true for %s', (url) => expect(hasInvalidDigest(url)).toBe(true));

  it.each(['/', '/v2/app-1/A/manifests/v1', `/v2/app-1/../a/blobs/uploads/?digest=${digest}`])(
    'is false for %s',
    (url) => expect(hasInvalidDigest(url)).toBe(false),
  );
});
