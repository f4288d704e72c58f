import { expect } from 'vitest';

/** The bar is exact only on a machine that does nothing else (TEST_GAPS=1). Elsewhere every process may stall for seconds. */
export function expectGap({ longestGapMs }: { longestGapMs: number }, barMs: number): void {
  expect(longestGapMs).toBeLessThan(process.env['TEST_GAPS'] ? barMs : barMs * 10);
}
