import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts'],
    globalSetup: ['test/postgres.ts'],
    // Generous, because machines that test are slow and shared; what is measured is in bench/.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 15_000 } },
    // Two cores, and several files start daemons of their own.
    maxWorkers: 3,
  },
});
