import { describe, expect, it } from 'vitest';
import type { Driver } from '../drivers/driver.ts';
import { DriverError } from '../errors/driver-error.ts';
import { driverPart } from './driver-part.ts';

interface State {
  id: string;
  members: string[];
}

/** What a host serves that was away while its states changed. */
async function returning(refuse: (state: State) => DriverError | null) {
  const world = new Map<string, string[]>();
  for (const id of ['a', 'b', 'removed']) world.set(id, ['revoked']);
  const driver = {
    status: () => ({ driver: 'memory', real: false, healthy: true, detail: '' }),
    stop: async () => undefined,
    async apply({ id, members }: State) {
      const error = refuse({ id, members });
      if (!error) return void world.set(id, members);
      // As a load balancer: what was omitted before is not an error again.
      if (!error.retryable && world.has(id)) throw error;
      const allowed = members.filter((member) => member !== 'forbidden');
      if (!error.retryable && allowed.length > 0) world.set(id, allowed);
      throw error;
    },
    remove: async (id: string) => void world.delete(id),
    quarantine: async (id: string) => void world.delete(id),
    list: async () => [...world.keys()],
  } as unknown as Driver<State, unknown>;
  const part = driverPart<State, typeof driver>({
    ...{ kind: 'load_balancer', title: 'load balancers' },
    open: async () => driver,
  });
  await part.start(null as never);
  const states = new Map(
    [
      { id: 'a', members: ['current', 'forbidden'] },
      { id: 'b', members: ['current'] },
    ].map((state) => [state.id, state]),
  );
  const failed = await part.converge(states, new AbortController().signal);
  await part.stopServing();
  return { world, failed };
}

const errorOf = (retryable: boolean) => new DriverError('refused', { customerMessage: 'not allowed', retryable });

describe('a host that converges', () => {
  it('serves the other resources, and nothing older, when one fails permanently', async () => {
    const { world, failed } = await returning(({ id }) => (id === 'a' ? errorOf(false) : null));
    expect([...failed]).toEqual([['a', expect.objectContaining({ customerMessage: 'not allowed', retryable: false })]]);
    expect([...world].sort()).toEqual([
      ['a', ['current']],
      ['b', ['current']],
    ]);
  });

  it('serves the other resources, and nothing older, when one has to be retried', async () => {
    const { world, failed } = await returning(({ id }) => (id === 'a' ? errorOf(true) : null));
    expect([...failed.keys()]).toEqual(['a']);
    expect([...world]).toEqual([['b', ['current']]]);
  });
});
