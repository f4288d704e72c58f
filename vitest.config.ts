import { join } from 'node:path';
import { defineConfig, type TestUserConfig } from 'vitest/config';
import { SlowestFirst } from './test/sequencer.ts';
import { groupTestFiles } from './test/test-files.ts';

const { system, browser, programs, isolated, exhaustive, fast } = groupTestFiles();

// `isolate: false`: one process loads the modules once for all its files, and starts Chromium once. Isolated files load the
// modules each: up to 2 s of CPU time a file.
const common: TestUserConfig = {
  // Generous, because machines that run tests are slow and shared; measurements belong in bench/.
  testTimeout: 60_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 30_000 } },
  // As bin/run.mjs does for the main process.
  execArgv: ['--import', join(import.meta.dirname, 'bin', 'module-resolution.mjs')],
};

export default defineConfig({
  test: {
    ...common,
    globalSetup: ['test/postgres.ts', 'test/service-accounts.ts'],
    // Twice the cores of CI, because many tests wait for timeouts, drains and daemons.
    maxWorkers: 4,
    sequence: { sequencer: SlowestFirst },
    // Every server and every command that a test starts loads the same modules.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules', '.cache', 'node-compile') },
    projects: [
      {
        test: {
          ...common,
          name: 'system',
          include: system,
          globalSetup: ['test/server-bundle.ts'],
          isolate: false,
        },
      },
      {
        test: {
          ...common,
          name: 'browser',
          include: browser,
          globalSetup: ['test/browser/build.ts', 'test/server-bundle.ts'],
          isolate: false,
        },
      },
      {
        test: {
          ...common,
          name: 'programs',
          include: programs,
          globalSetup: ['test/server-bundle.ts'],
          isolate: false,
        },
      },
      { test: { ...common, name: 'isolated', include: isolated } },
      ...Object.entries({ exhaustive, fast }).map(([name, include]) => ({
        test: { ...common, name, include, setupFiles: ['test/fast-setup.ts'], isolate: false },
      })),
    ],
  },
});
