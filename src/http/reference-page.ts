/** The API reference at `/docs`. Invariant: the page sends requests only to this server. */
import Fastify, { type FastifyInstance } from 'fastify';
import { everyone } from '../authz/access.ts';
import type { App } from './app.ts';
import { sendContent, storeContent, type StoredContent } from './stored-content.ts';

/** Disables every feature that would send requests to the vendor of the page. */
const configuration = {
  url: '/openapi.json',
  pageTitle: 'Cloudyard API reference',
  // Without it, browsers request /favicon.ico, which does not exist.
  favicon: 'data:,',
  telemetry: false,
  withDefaultFonts: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  persistAuth: true,
  authentication: {
    preferredSecurityScheme: 'apikey',
    securitySchemes: { apikey: { name: 'Authorization', in: 'header', value: 'apikey <token>' } },
  },
};

/** The page has inline scripts and styles. `connect-src` also keeps it from other servers. */
const contentSecurityPolicy = [
  ...["default-src 'none'", "script-src 'self' 'unsafe-inline'", "style-src 'self' 'unsafe-inline'"],
  ...["img-src 'self' data: blob:", "font-src 'self' data:", "connect-src 'self'", "worker-src 'self' blob:"],
  ...["object-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"],
].join('; ');

interface StoredPage {
  status: number;
  headers: { 'content-type'?: string; location?: string };
  /** Stored if the status is 200. */
  content: StoredContent | Buffer;
}

/**
 * The reference page takes 26 MB of memory, so its module is loaded at the first request, in an app of its own: routes
 * cannot be added to an app that listens.
 */
export function referencePage(app: App): void {
  let opened: Promise<FastifyInstance> | undefined;
  const open = async () => {
    const { default: scalar } = await import('@scalar/fastify-api-reference');
    const page = Fastify();
    await page.register(scalar, { routePrefix: '/docs', configuration } as never);
    return page;
  };
  // Cached, because the script is 4 MB: all clients share one copy, also slow ones. By its route, because a path has many
  // spellings (`%73calar.js`), and each would be another copy.
  const pages = new Map<string, Promise<StoredPage>>();
  const load = async (path: string): Promise<StoredPage> => {
    const { statusCode, headers, rawPayload } = await (await (opened ??= open())).inject({ url: path });
    const { location, 'content-type': type } = headers;
    return {
      status: statusCode,
      headers: { ...(type && { 'content-type': String(type) }), ...(location && { location }) },
      content: statusCode === 200 ? await storeContent(rawPayload) : rawPayload,
    };
  };
  for (const url of ['/docs', '/docs/js/scalar.js']) {
    app.get(url, { config: { access: everyone, isCounted: true }, schema: { hide: true } }, async (request, reply) => {
      // `/docs` redirects to `/docs/`.
      const path = url === '/docs' && request.url.split('?', 1)[0]!.endsWith('/') ? '/docs/' : url;
      const loading = pages.get(path) ?? load(path);
      pages.set(path, loading);
      const page = await loading.finally(() => pages.delete(path));
      if (page.status === 200) pages.set(path, loading);
      reply.code(page.status).headers({ ...page.headers, 'content-security-policy': contentSecurityPolicy });
      const { content } = page;
      return Buffer.isBuffer(content) ? reply.send(content) : sendContent(request, reply, content);
    });
  }
}
