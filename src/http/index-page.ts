/**
 * `GET /`: the name, version and links of the server, as a page for browsers and as JSON for programs.
 *
 * Invariant: the page loads nothing and runs no script. Its content security policy allows only its own style sheet.
 */
import { hash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { escapeHtml } from '../platform/html.ts';
import { Component, FieldsOf } from './shapes.ts';

export const consolePath = '/console';

/** The links: their paths, their titles on the page, and what they are in the API document. */
const links = {
  console: { path: consolePath, title: 'Console', what: 'The web console; absent if this server does not serve it' },
  reference: { path: '/docs', title: 'API reference', what: 'The API reference, a web page' },
  openapi: { path: '/openapi.json', title: 'OpenAPI document', what: 'The OpenAPI document' },
  health: { path: '/healthz', title: 'Liveness', what: 'Liveness' },
  readiness: { path: '/readyz', title: 'Readiness', what: 'Readiness' },
  drivers: { path: '/healthz/drivers', title: 'Drivers', what: 'The drivers of all workers and their status' },
};

const { console: ofConsole, ...others } = FieldsOf(links, ({ what }) => Type.String({ description: what }));

export const Index = Component(
  'ServerIndex',
  {
    name: Type.String({ description: 'The name of the software' }),
    version: Type.String({ description: 'The version of the server' }),
    links: Component('ServerLinks', { console: Type.Optional(ofConsole), ...others }, 'Paths on this server'),
  },
  'Name, version and links of the server',
);

export function describeServer(version: string, servesConsole = false): Static<typeof Index> {
  const served = Object.entries(links).filter(([name]) => name !== 'console' || servesConsole);
  const paths = Object.fromEntries(served.map(([name, { path }]) => [name, path]));
  return { name: 'Cloudyard', version, links: paths as Static<typeof Index>['links'] };
}

/** `color-scheme` of the root: that of the body would change the links, but not the background. */
const style =
  ':root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}';

export const indexHeaders = {
  'content-security-policy': [
    `default-src 'none'`,
    `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; '),
};

/** The page as HTML. */
export function indexPage({ name, version, links: paths }: Static<typeof Index>): string {
  const items = Object.entries(paths).map(
    ([key, path]) => `<li><a href="${escapeHtml(path)}">${escapeHtml(links[key as keyof typeof links].title)}</a></li>`,
  );
  return plainPage(escapeHtml(name), [`<p>Version ${escapeHtml(version)}</p>`, '<ul>', ...items, '</ul>']);
}

/** A page with the style sheet that `indexHeaders` allow. All arguments are HTML. */
export function plainPage(title: string, lines: string[], head = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">${head}
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<h1>${title}</h1>
${lines.join('\n')}
</body>
</html>
`;
}
