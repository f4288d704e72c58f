import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createPricing } from './service.ts';

it('rounds the exact price, once', () => {
  // An hour is 787.4639474999999999999999897…: rounded to 20 places first, it would be a half and round up.
  const book = {
    currency: 'EUR' as const,
    tax_percent: '33.427281',
    unit_hours: { file_share_standard_gib: '677.561136598586' },
    discounts: [{ client_id: 7, percent: '12.896109' }],
  };
  const nothing = () => Promise.reject(new Error('prices of file shares read no resources'));
  const sources = { regions: { get: () => null }, volumes: { get: nothing }, snapshots: { get: nothing } };
  const pricing = createPricing(() => book, pino({ enabled: false }), sources);
  const share = { source: 'new-file-share' as const, size: 1 };
  expect(pricing.fileShare({ projectId: 1, regionId: 1 } as never, 7, share).price_per_hour).toBe(787.463947);
});
