import { describe, expect, it } from 'vitest';
import { frontsOf, replaceFronts } from './circles.ts';
import type { Spec } from './specs.ts';
import { balancer, listener, member, pool, withPool } from './test-host.ts';

const refuseCircle = (spec: Spec, present: Spec[]) => {
  const before = present.find(({ id }) => id === spec.id);
  replaceFronts(frontsOf(present), before, spec);
};
const to = (address: string, port = 80) => ({ members: [member(19_999), member(port, { address })] });

describe('traffic that would go in a circle is refused', () => {
  it('from a listener to itself, and not to another one', () => {
    const own = balancer({}, { port: 80 });
    const itself = withPool(own, to(own.address));
    expect(() => refuseCircle(itself, [])).toThrow(
      expect.objectContaining({ retryable: false, customerMessage: expect.stringContaining(`${own.address} port 80`) }),
    );
    expect(() => refuseCircle(withPool(own, to(own.address, 81)), [])).not.toThrow();
    // What is to be counts, and not what was.
    expect(() => refuseCircle(own, [itself])).not.toThrow();
  });

  it('over other listeners and load balancers, however many, and not where the way ends', () => {
    const [a, b, c] = [balancer({}, { port: 80 }), balancer({}, { port: 80 }), balancer({}, { port: 80 })];
    const chain = [withPool(b, to(c.address)), withPool(c, to('127.0.0.1'))];
    expect(() => refuseCircle(withPool(a, to(b.address)), chain)).not.toThrow();
    const back = [withPool(b, to(c.address)), withPool(c, to(a.address))];
    expect(() => refuseCircle(withPool(a, to(b.address)), back)).toThrow(/circle/);
    const second = pool(to(a.address));
    const both = { ...a, listeners: [...a.listeners, listener({ port: 81, defaultPoolId: second.id })] };
    const within = withPool({ ...both, pools: [...a.pools, second] }, to(a.address, 81));
    expect(() => refuseCircle(within, [])).toThrow(/circle/);
    // A circle of others is theirs.
    const others = [withPool(b, to(c.address)), withPool(c, to(b.address))];
    expect(() => refuseCircle(withPool(a, to(b.address)), others)).not.toThrow();
  });

  it('and what is refused leaves all as it was', () => {
    const [a, b] = [balancer({}, { port: 80 }), balancer({}, { port: 80 })];
    const present = [a, withPool(b, to(a.address))];
    const fronts = frontsOf(present);
    expect(() => replaceFronts(fronts, a, withPool(a, to(b.address)))).toThrow(/circle/);
    expect(fronts).toEqual(frontsOf(present));
    replaceFronts(fronts, b, undefined);
    expect(fronts).toEqual(frontsOf([a]));
  });

  it('of datagrams too, which do not meet connections', () => {
    const own = balancer({ protocol: 'UDP' }, { protocol: 'UDP', port: 80 });
    expect(() => refuseCircle(withPool(own, to(own.address)), [])).toThrow(/circle/);
    const other = balancer(to(own.address), { port: 80 });
    expect(() => refuseCircle(withPool(own, to(other.address)), [other])).not.toThrow();
  });
});
