import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard();
const shares = '/cloud/v1/file_shares/1/1';

describe('checks before a create', () => {
  it('check_limits returns only the limits that would be exceeded', async () => {
    expect((await cloud.post(`${shares}/check_limits`, { size: 1 })).body).toEqual({});
    const { body } = await cloud.post(`${shares}/check_limits`, { size: 999_999 });
    expect(body).toEqual({ sfs_size_limit: 100_000, sfs_size_requested: 999_999, sfs_size_usage: expect.any(Number) });
  });

  it('returns the price including tax', async () => {
    const path = '/cloud/v1/pricing/1/1/file_shares';
    const { body } = await cloud.post(path, { size: 100, source: 'new-file-share' });
    expect(body).toEqual({
      currency_code: 'EUR',
      discount_percent: 0,
      price_per_hour: 0.025623,
      price_per_month: 18.7,
      price_status: 'show',
      price_without_discount_per_month: 18.7,
      tax_percent: 17,
    });
    expect((await cloud.post(path, { size: 0, source: 'new-file-share' })).status).toBe(400);
    expect((await cloud.post(path, { size: 1, source: 'other' })).status).toBe(400);
  });
});
