import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isEqual } from './equality.ts';
import { kinds } from './kinds.ts';
import { planUpdate, surplusOf } from './plan.ts';

const kind = (name: string) => kinds().get(name)!;
const tag = (key: string, value: string, read_only = false) => ({ key, value, read_only });
const steps = (plan: ReturnType<typeof planUpdate>) => plan.steps.map(({ operation, body }) => [operation.id, body]);

describe('kinds', () => {
  it('come in the order of their dependencies', () => {
    const names = [...kinds().keys()];
    expect(names).toEqual([
      ...['project', 'network', 'subnet', 'secret', 'file-share', 'volume', 'snapshot', 'load-balancer', 'listener'],
      ...['pool', 'l7-policy', 'lifecycle-policy', 'registry', 'api-key', 'pull-secret'],
    ]);
  });
});

describe('planUpdate', () => {
  const live = { id: 'x', name: 'data', size: 1, protocol: 'NFS', tags: [tag('team', 'web'), tag('sys', '1', true)] };

  it('sends nothing if the resource has what the file says', () => {
    const spec = { name: 'data', size: 1, tags: { team: 'web' }, volume_type: 'default_share_type' };
    expect(planUpdate(kind('file-share'), spec, live)).toEqual({ changes: [], steps: [], fixed: [] });
  });

  it('patches what an update can change, and uses an action for the rest', () => {
    const plan = planUpdate(kind('file-share'), { name: 'data', size: 2, tags: { env: 'test' } }, live);
    expect(steps(plan)).toEqual([
      ['updateFileShare', { tags: { team: null, env: 'test' } }],
      ['extendFileShare', { size: 2 }],
    ]);
    expect(plan.changes).toEqual([
      { field: 'size', from: 1, to: 2 },
      { field: 'tags', from: { team: 'web' }, to: { env: 'test' } },
    ]);
  });

  it('reports fields that cannot change', () => {
    const plan = planUpdate(kind('file-share'), { name: 'data', protocol: 'SMB' }, live);
    expect(plan).toEqual({ changes: [], steps: [], fixed: [{ field: 'protocol', from: 'NFS', to: 'SMB' }] });
  });

  it.each(['file-share', 'volume'])('reports that a %s cannot shrink', (name) => {
    const plan = planUpdate(kind(name), { size: 1 }, { id: 'x', size: 2 });
    expect(plan).toEqual({ changes: [], steps: [], fixed: [{ field: 'size', from: 2, to: 1 }] });
    const registry = planUpdate(kind('registry'), { storage_limit: 1 }, { id: 1, storage_limit: 2 });
    expect(steps(registry)).toEqual([['resizeRegistry', { storage_limit: 1 }]]);
  });

  it('removes the volumes of a policy that the file omits, and adds others', () => {
    const policy = { id: 1, volumes: [{ volume_id: 'a' }, { volume_id: 'b' }] };
    const plan = planUpdate(kind('lifecycle-policy'), { volume_ids: ['b', 'c'] }, policy);
    expect(steps(plan)).toEqual([
      ['removeLifecyclePolicyVolumes', { volume_ids: ['a'] }],
      ['addLifecyclePolicyVolumes', { volume_ids: ['c'] }],
    ]);
    expect(plan.changes).toEqual([{ field: 'volume_ids', from: ['a', 'b'], to: ['b', 'c'] }]);
    expect(planUpdate(kind('lifecycle-policy'), { volume_ids: ['b', 'a'] }, policy).steps).toEqual([]);
  });

  it('removes the access rules that the file omits before it adds others', () => {
    const access = [
      { id: 'r1', access_to: '10.0.0.1', access_level: 'rw' },
      { id: 'r2', access_to: '10.0.0.2', access_level: 'ro' },
    ];
    const wanted = [
      { ip_address: '10.0.0.2', access_mode: 'ro' },
      { ip_address: '10.0.0.1', access_mode: 'ro' },
    ];
    const plan = planUpdate(kind('file-share'), { access: wanted }, { ...live, access });
    expect(steps(plan)).toEqual([
      ['deleteFileShareAccessRule', undefined],
      ['createFileShareAccessRule', { ip_address: '10.0.0.1', access_mode: 'ro' }],
    ]);
    expect(plan.steps[0]!.values).toEqual({ access_rule_id: 'r1' });
  });

  it('keeps the access rules of equal networks', () => {
    const access = [{ id: 'r1', access_to: '10.0.0.1', access_level: 'rw' }];
    const wanted = [{ ip_address: '10.0.0.1/32', access_mode: 'rw' }];
    expect(planUpdate(kind('file-share'), { access: wanted }, { ...live, access }).steps).toEqual([]);
  });

  it('reads fields of the creation where the resource has them', () => {
    const balancer = { id: 'x', name: 'lb', tags_v2: [tag('app', 'shop')], flavor: { flavor_id: 'lb1-1-2' } };
    const spec = { flavor: 'lb1-1-2', tags: { app: 'shop' } };
    expect(planUpdate(kind('load-balancer'), spec, balancer).steps).toEqual([]);
    const resized = planUpdate(kind('load-balancer'), { flavor: 'lb1-2-4' }, balancer);
    expect(steps(resized)).toEqual([['resizeLoadBalancer', { flavor: 'lb1-2-4' }]]);
    const { fixed } = planUpdate(kind('volume'), { type_name: 'cold' }, { volume_type: 'standard' });
    expect(fixed).toEqual([{ field: 'type_name', from: 'standard', to: 'cold' }]);
  });
});

describe('isEqual', () => {
  it('of a date without a zone, in a place that is not in UTC', () => {
    vi.stubEnv('TZ', 'Europe/Berlin');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(isEqual('2030-01-01T01:00:00', '2030-01-01T00:00:00Z')).toBe(false);
    expect(isEqual('2030-01-01T00:00:00', '2030-01-01T00:00:00Z')).toBe(true);
  });

  it.each([
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1, secret: 'x' }, { a: 1 }],
    [
      [1, 2],
      [2, 1],
    ],
    [
      [{ port: 1 }, { port: 2 }],
      [
        { id: 'b', port: 2 },
        { id: 'a', port: 1 },
      ],
    ],
    ['2030-01-01T00:00:00Z', '2030-01-01T00:00:00.000+00:00'],
    ['2030-01-01 02:00:00+02', '2030-01-01T00:00:00.000000'],
    ['2030-01-01T00:00:00', '2030-01-01T00:00:00Z'],
    ['2030-01-01T00:00:00.5Z', '2030-01-01T00:00:00Z'],
    ['2001:DB8:0::/64', '2001:db8::/64'],
    ['10.44.0.0/024', '10.44.0.0/24'],
    ['10.0.0.1', '10.0.0.1/32'],
    ['::ffff:10.0.0.0/120', '10.0.0.0/24'],
    ['FD00::1', 'fd00::1/128'],
    [null, null],
  ])('of %j and %j', (wanted, live) => expect(isEqual(wanted, live)).toBe(true));

  it.each([
    [
      [1, 1],
      [1, 2],
    ],
    [[1], [1, 2]],
    ['1', 1],
    [{ a: 1 }, null],
    [null, 'x'],
    ['2030-01-01', '2030-01-02'],
    ['10.0.0.0/24', '10.0.0.0/25'],
    ['10.0.0.0/24', '10.0.0.0'],
    ['::/0', '0.0.0.0/0'],
    ['1', '0.0.0.1/32'],
    ['shop/1', 'shop/01'],
  ])('of %j and %j is false', (wanted, live) => expect(isEqual(wanted, live)).toBe(false));
});

it('surplus is what has the tag and no file', () => {
  const live = [
    { name: 'kept', tags: [tag('app', 'shop')] },
    { name: 'old', tags: [tag('app', 'shop')] },
    { name: 'other', tags: [tag('app', 'blog')] },
    { name: 'none' },
  ];
  expect(surplusOf(live, new Set(['kept']), { key: 'app', value: 'shop' })).toEqual([live[1]]);
});
