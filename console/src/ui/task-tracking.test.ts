import { beforeEach, describe, expect, it, vi } from 'vitest';
import { queryClient } from '../api/query-client.ts';
import { trackTasks } from './task-tracking.ts';
import { showToast } from './toasts.tsx';

vi.mock('./toasts.tsx', () => ({ showToast: vi.fn<typeof showToast>(() => 1) }));
vi.mock('../tasks/data.ts', () => ({
  taskQuery: (id: string) => ({ queryKey: ['tasks', id], queryFn: () => new Promise(() => {}) }),
}));

const scope = { project: 1, region: 1, path: () => '' };
const text = { busy: 'Creating', done: 'Created' };

describe('a task that is followed, and whose end is in the cache', () => {
  beforeEach(() => void vi.clearAllMocks());

  it.each([
    ['current', { state: 'FINISHED' }, false, { tone: 'ok', text: 'Created' }],
    ['out of date', { state: 'FINISHED' }, true, { tone: 'ok', text: 'Created' }],
    ['failed', { state: 'ERROR', error: 'no space' }, true, { tone: 'bad', text: 'Creating failed: no space' }],
  ])('is reported at once (%s)', async (id, task, isStale, toast) => {
    queryClient.setQueryData(['tasks', id], task);
    if (isStale) await queryClient.invalidateQueries({ queryKey: ['tasks', id] });
    trackTasks([id], scope, text);
    await vi.waitFor(() => expect(showToast).toHaveBeenCalledWith(expect.objectContaining(toast), 1));
    expect(
      queryClient
        .getQueryCache()
        .find({ queryKey: ['tasks', id] })!
        .getObserversCount(),
    ).toBe(0);
  });
});
