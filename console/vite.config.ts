import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { precompress } from './vite/precompress.ts';
import { schemas } from './vite/schemas.ts';

const LIBRARIES = /node_modules\/(react|scheduler|@tanstack|openapi-fetch|use-sync-external-store)/;
/** Parts of libraries that the first page loads without need: 2 kB. */
const OF_SOME_PAGES = /\/(useBlocker|useMutation|mutationObserver|useQueries|queriesObserver)\.js/;

/** The server that `npm run console` sends API requests to. */
const server = process.env['CLOUDYARD_URL'] ?? 'http://127.0.0.1:8080';
const proxied = { target: server, changeOrigin: true };

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react(), schemas(join(import.meta.dirname, '..', 'openapi.json')), precompress()],
  build: {
    outDir: 'dist',
    // light-dark() and nested CSS stay as written.
    target: 'es2023',
    cssTarget: 'chrome123',
    // A data: URL would need its own permission in the Content-Security-Policy.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    manifest: true,
    // Licences of the bundled packages, most of which require their text in each copy.
    license: { fileName: 'licences.txt' },
    // The list of what each of the 200 chunks needs took 3.5 kB of the first one. Links load their page when the pointer is on
    // them, and pages share three chunks, so what they import is mostly there.
    modulePreload: {
      resolveDependencies: (_, files, { hostType }) => (hostType === 'html' ? files : []),
      polyfill: false,
    },
    rolldownOptions: {
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          // One chunk compresses better than two, and browsers keep the libraries when only the console changes.
          groups: [
            {
              name: 'libraries',
              test: (id: string) => LIBRARIES.test(id) && !OF_SOME_PAGES.test(id),
            },
            { name: 'forms', test: /src\/ui\/(form\/|by-code|copy|dialog|task-tracking)|useBlocker/ },
            {
              name: 'views',
              test: /src\/ui\/(list-page|list-state|page-head|kept-focus|table|detail-page|resource-tabs|filter-|action-button)/,
            },
          ],
        },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ['/cloud', '/cloudyard', '/docs', '/healthz', '/openapi.json', '/v1'].map((path) => [path, proxied]),
    ),
  },
});
