import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { precompress } from './vite/precompress.ts';
import { schemas } from './vite/schemas.ts';

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
    // One chunk compresses better than two, and browsers keep it when only the console changes.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [{ name: 'libraries', test: /node_modules\/(react|scheduler|@tanstack|openapi-fetch)/ }],
        },
      },
    },
  },
  server: { proxy: { '/cloud': proxied, '/cloudyard': proxied, '/healthz': proxied, '/v1': proxied } },
});
