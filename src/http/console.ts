/**
 * Serves the console at `/console`: the files that `npm run console:build` makes. Paths of pages get the start page, because
 * the console shows them.
 *
 * Invariant: the pages run only scripts of this server, are in no frame, and send requests only to this server.
 */
import { open } from 'node:fs/promises';
import { extname } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { everyone } from '../authz/access.ts';
import { ClientError, unavailable } from '../errors/catalogue.ts';
import type { App, Routes } from './app.ts';
import { type ConsoleFile, createConsoleIndex, startPage } from './console-files.ts';
import { negotiate } from './content-negotiation.ts';
import { consolePath, indexHeaders, plainPage } from './index-page.ts';

const headers = {
  'content-security-policy': [
    ...["default-src 'self'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
    ...["object-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"],
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const year = 365 * 86_400;
/** How soon the page of a missing build loads again: a start builds the console in the background. */
const retrySeconds = 5;

/** `folder`: the build, `console/dist`. */
export function consoleRoutes(folder: string): Routes {
  const findIndex = createConsoleIndex(folder);
  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    const path = (request.params as { '*'?: string })['*'] ?? '';
    const index = await findIndex();
    if (!index) return sendMissingBuild(reply);
    const file = index.get(isPage(path) ? startPage : path);
    if (!file) throw new ClientError('NotFound', `the console has no file ${path}`);
    return sendFile(request, reply, file);
  };
  return (app: App) => {
    const config = { access: everyone };
    for (const url of [consolePath, `${consolePath}/*`]) {
      app.route({ method: ['GET', 'HEAD'], url, config, schema: { hide: true }, handler: handle });
    }
  };
}

/** Whether the console shows the path, as opposed to a file. A page of a project may end with a name that contains a dot. */
function isPage(path: string): boolean {
  const parts = path.split(/[/\\]/);
  return (parts[0] === 'p' || extname(path) === '') && !parts.includes('..') && !path.includes('\0');
}

async function sendFile(request: FastifyRequest, reply: FastifyReply, file: ConsoleFile): Promise<FastifyReply> {
  const cacheControl = file.isImmutable ? `public, max-age=${year}, immutable` : 'no-cache';
  const { encoding, caching, isKnown } = negotiate(request.headers, file, cacheControl);
  if (isKnown) {
    return reply
      .code(304)
      .headers({ ...headers, ...caching })
      .send();
  }
  // Opened before the headers, because a stream that fails after them would end the response in its middle.
  const opened = await open(file.variants[encoding]!).catch(() => null);
  if (!opened) throw unavailable('the console is being replaced');
  reply.headers({
    ...headers,
    ...caching,
    'content-type': file.type,
    // Of the open file: a new build may have replaced the one of the index.
    'content-length': (await opened.stat()).size,
    ...(encoding !== 'identity' && { 'content-encoding': encoding }),
  });
  if (request.method !== 'HEAD') return reply.send(opened.createReadStream());
  await opened.close();
  return reply.send();
}

const missingBuild = plainPage(
  'The console is not built',
  [
    '<p>A start from a checkout builds it in the background, which takes a few seconds; this page loads again by itself.</p>',
    '<p>If it does not appear, see the log of the server, or build it: <code>npm run console:build</code></p>',
  ],
  `<meta http-equiv="refresh" content="${retrySeconds}">`,
);

function sendMissingBuild(reply: FastifyReply): FastifyReply {
  const caching = { 'cache-control': 'no-store', 'retry-after': String(retrySeconds) };
  return reply
    .code(503)
    .headers({ ...indexHeaders, ...caching })
    .type('text/html; charset=utf-8')
    .send(missingBuild);
}
