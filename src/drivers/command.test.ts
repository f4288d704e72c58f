import { expect, it } from 'vitest';
import { run } from './command.ts';

it('a program that is stopped is ended when its time is over', async () => {
  const started = performance.now();
  await expect(run('sh', ['-c', 'kill -STOP $$'], { timeout: 0.5 })).rejects.toMatchObject({ retryable: true });
  expect(performance.now() - started).toBeLessThan(5000);
});
