/**
 * `GET /`: the name, version and links of the server, as a page for browsers and as JSON for programs.
 *
 * Invariant: the page loads nothing and runs no script. Its content security policy allows only its own style sheet.
 */
import { hash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { escapeHtml } from '../platform/html.ts';
import { Component } from './shapes.ts';

export const Index = Component(
  'ServerIndex',
  {
    name: Type.String({ description: 'The name of the software' }),
    version: Type.String({ description: 'The version of the server' }),
    links: Component(
      'ServerLinks',
      {
        console: Type.Optional(
          Type.String({ description: 'The web console; absent if this server does not serve it' }),
        ),
        reference: Type.String({ description: 'The API reference, a web page' }),
        openapi: Type.String({ description: 'The OpenAPI document' }),
        health: Type.String({ description: 'Liveness' }),
        readiness: Type.String({ description: 'Readiness' }),
        drivers: Type.String({ description: 'The drivers of all workers and their status' }),
      },
      'Paths on this server',
    ),
  },
  'Name, version and links of the server',
);

/** `consolePath`: where the server serves the console, if it does. */
export function describeServer(version: string, consolePath?: string): Static<typeof Index> {
  return {
    name: 'Cloudyard',
    version,
    links: {
      ...(consolePath !== undefined && { console: consolePath }),
      reference: '/docs',
      openapi: '/openapi.json',
      health: '/healthz',
      readiness: '/readyz',
      drivers: '/healthz/drivers',
    },
  };
}

const titles: Record<keyof Static<typeof Index>['links'], string> = {
  console: 'Console',
  reference: 'API reference',
  openapi: 'OpenAPI document',
  health: 'Liveness',
  readiness: 'Readiness',
  drivers: 'Drivers',
};

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
export function indexPage({ name, version, links }: Static<typeof Index>): string {
  const items = Object.entries(links).map(
    ([key, path]) => `<li><a href="${escapeHtml(path)}">${escapeHtml(titles[key as keyof typeof links])}</a></li>`,
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
