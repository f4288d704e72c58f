import { afterEach, describe, expect, it, vi } from 'vitest';
import { keyOf, noteAnswer } from './idempotency-keys.ts';

afterEach(() => void vi.useRealTimers());

const url = '/cloud/v1/networks/1/1';

describe('the key of a POST', () => {
  it('is the same until an answer arrives, also one of a failure of the server', () => {
    const key = keyOf(url, 'a');
    noteAnswer(key, 503);
    expect(keyOf(url, 'a')).toBe(key);
    expect(keyOf(url, 'b')).not.toBe(key);
    noteAnswer(key, 409);
    expect(keyOf(url, 'a')).not.toBe(key);
  });

  it('is another one after ten minutes', () => {
    vi.useFakeTimers();
    const key = keyOf(url, 'later');
    vi.advanceTimersByTime(9 * 60_000);
    expect(keyOf(url, 'later')).toBe(key);
    vi.advanceTimersByTime(2 * 60_000);
    expect(keyOf(url, 'later')).not.toBe(key);
  });

  it('is absent for previews and prices', () => {
    expect(keyOf('/cloud/v1/pricing/1/1/volumes', '')).toBeNull();
    expect(keyOf('/cloud/v1/lifecycle_policy/1/1/preview_schedule', '')).toBeNull();
  });
});
