import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { version } from '../main/version.ts';
import { describeServer, indexPage } from './index-page.ts';

const cloud = useCloudyard({ driver: null });
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const get = (accept?: string) => cloud.get('/', { token: null, headers: accept === undefined ? {} : { accept } });

describe('GET /', () => {
  it.each([undefined, '*/*', 'application/json', 'image/png'])(
    'returns JSON to a program (Accept: %s)',
    async (accept) => {
      const { status, headers, body } = await get(accept);
      expect([status, headers['content-type'], headers.vary]).toEqual([
        200,
        expect.stringContaining('application/json'),
        'accept',
      ]);
      expect(body).toMatchObject({ name: 'Cloudyard', version, links: { reference: '/docs', health: '/healthz' } });
    },
  );

  it('returns a page with the version to a browser', async () => {
    const { status, headers, body } = await get(browser);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body).toContain(`Version ${version}`);
    expect(headers.vary).toBe('accept');
  });

  it('has no link to a path that does not exist', async () => {
    const { body } = await get();
    const answers = await Promise.all(Object.values<string>(body.links).map((url) => cloud.get(url, { token: null })));
    expect(answers.filter(({ status }) => status >= 400)).toEqual([]);
    const page = (await get(browser)).body as string;
    expect([...page.matchAll(/href="([^"]+)"/g)].map(([, href]) => href)).toEqual(Object.values(body.links));
  });

  it('allows only its own style sheet and loads nothing', async () => {
    const { headers, body } = await get(browser);
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(body) ?? [];
    expect(style).toMatch(/^:root{color-scheme:light dark}/);
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(body).not.toMatch(/<script|<img|<link|src=|https?:|style="/);
  });
});

describe('the page', () => {
  it('escapes all values', () => {
    const page = indexPage({ ...describeServer(`"><script>alert('1')</script>&`), name: '<b>' });
    expect(page).toContain('Version &quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;');
    expect(page).toContain('<h1>&lt;b&gt;</h1>');
    expect(page).not.toContain('<script');
  });
});
