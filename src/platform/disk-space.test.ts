import { expect, it } from 'vitest';
import { diskStatus } from './disk-space.ts';

it('a data directory that cannot be read is unhealthy', () => {
  const status = diskStatus('/nonexistent/cloudyard', 5);
  expect(status).toMatchObject({ healthy: false, freeBytes: 0, totalBytes: 0, reserveBytes: 0 });
  expect(status.detail).toContain('ENOENT');
});
