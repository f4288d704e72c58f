import { expect, it, vi } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { keepHealthy } from './health.ts';
import type { Tenure } from './tenure.ts';

/** A server of one share, and a function that probes it once. */
function serverOf(share: string) {
  const state = { responds: true, clusterIsAway: false };
  const restart = vi.fn<() => void>();
  let probe = async () => undefined as void;
  const tenure = {
    healthy: new Set<string>(),
    server: { isUp: () => true, probe: async () => new Set(state.responds ? [share] : []), restart },
    every: (_ms: number, work: () => Promise<void>) => (probe = work),
    async requireFencing() {
      if (state.clusterIsAway) throw new Error('the monitors do not respond');
    },
  };
  const confirm = async () => undefined;
  keepHealthy(tenure as unknown as Tenure, new Map([[share, {}]]), { confirm, log: silentLogger });
  return { state, restart, probe: () => probe() };
}

it('a server that stops responding is started again after the second probe', async () => {
  const { state, restart, probe } = serverOf('a');
  await probe();
  state.responds = false;
  await probe();
  expect(restart).not.toHaveBeenCalled();
  await probe();
  expect(restart).toHaveBeenCalledOnce();
});

it('a server that does not respond because the cluster is away runs on, and has time to respond when it returns', async () => {
  const { state, restart, probe } = serverOf('a');
  Object.assign(state, { responds: false, clusterIsAway: true });
  const probes = async (count: number) => {
    for (let i = 0; i < count; i++) await probe();
  };
  await probes(20);
  state.clusterIsAway = false;
  // The one that notices the return, five while metadata servers recover, one more.
  await probes(7);
  expect(restart).not.toHaveBeenCalled();
  await probe();
  expect(restart).toHaveBeenCalledOnce();
});
