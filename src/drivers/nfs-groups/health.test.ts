import { expect, it, vi } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { keepHealthy } from './health.ts';
import type { Tenure } from './tenure.ts';

/** A server of one share, and a function that probes it once. */
function serverOf(share: string) {
  const state = { isUp: true, responds: true, clusterIsAway: false };
  const restart = vi.fn<() => void>();
  const end = vi.fn<() => void>();
  let probe = async () => undefined as void;
  const tenure = {
    healthy: new Set<string>(),
    server: { isUp: () => state.isUp, probe: async () => new Set(state.responds ? [share] : []), restart },
    end,
    every: (_ms: number, work: () => Promise<void>) => (probe = work),
    async requireFencing() {
      if (state.clusterIsAway) throw new Error('the monitors do not respond');
    },
  };
  const confirm = async () => undefined;
  keepHealthy(tenure as unknown as Tenure, new Map([[share, {}]]), { confirm, log: silentLogger });
  const probes = async (count: number) => {
    for (let i = 0; i < count; i++) await probe();
  };
  return { state, restart, end, probe: () => probe(), probes };
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
  const { state, restart, probe, probes } = serverOf('a');
  Object.assign(state, { responds: false, clusterIsAway: true });
  await probes(20);
  state.clusterIsAway = false;
  // The one that notices the return, five while metadata servers recover, one more.
  await probes(7);
  expect(restart).not.toHaveBeenCalled();
  await probe();
  expect(restart).toHaveBeenCalledOnce();
});

it('a group whose server cannot be started again is given up, but not while the cluster is away', async () => {
  const { state, end, probe, probes } = serverOf('a');
  state.isUp = false;
  await probes(29);
  state.isUp = true;
  await probe();
  Object.assign(state, { isUp: false, clusterIsAway: true });
  await probes(30);
  state.clusterIsAway = false;
  await probes(29);
  expect(end).not.toHaveBeenCalled();
  await probe();
  expect(end).toHaveBeenCalledOnce();
});
