/** Which responses the model accepts of operations at the same time. */
import { expect, it } from 'vitest';
import { explain, type Observed } from './expectation.ts';
import type { Group, Model, Step } from './model.ts';
import { newClientModel } from './play.ts';

const ok: Observed = { status: 200, isRepeat: false };
const refusal = (code: string, status = 409): Observed => ({ status, code, isRepeat: false });
const secret = (label: string): Step => ({ command: 'create secret', on: null, label, body: { name: label } });
const onNetwork = (command: string, body: Step['body'] = null): Step => ({
  command,
  on: 'network0',
  label: null,
  body,
});
const group = (...steps: Step[]): Group => ({ steps });
const tagsIn = (model: Model | undefined) => model?.entities['network0']?.fields['tags'];

it('one of two creates fits into a quota, whichever came first', () => {
  const model = newClientModel({ secret_count: 1 });
  const both = group(secret('secret1'), secret('secret2'));
  const models = explain(model, both, [refusal('QuotaExceeded'), ok]);
  expect(models.map(({ entities }) => Object.keys(entities).filter((label) => label.startsWith('secret')))).toEqual([
    ['secret2'],
  ]);
  expect(explain(model, both, [ok, ok])).toEqual([]);
});

it('a refusal that no other step causes is wrong', () => {
  const model = newClientModel({});
  expect(explain(model, group(secret('secret1')), [refusal('QuotaExceeded')])).toEqual([]);
  expect(explain(model, group(onNetwork('add tags of network', {})), [refusal('ResourceLocked')])).toEqual([]);
});

it('two changes of one tag end in either order', () => {
  const both = group(onNetwork('add tags of network', { key0: 'a' }), onNetwork('add tags of network', { key0: 'b' }));
  const models = explain(newClientModel({}), both, [ok, ok]);
  expect(models.map(tagsIn)).toEqual(expect.arrayContaining([{ key0: 'a' }, { key0: 'b' }]));
  expect(models).toHaveLength(2);
});

it('two changes of different tags both remain', () => {
  const both = group(onNetwork('add tags of network', { key0: 'a' }), onNetwork('add tags of network', { key1: 'b' }));
  expect(explain(newClientModel({}), both, [ok, ok]).map(tagsIn)).toEqual([{ key0: 'a', key1: 'b' }]);
});

it('a repeated deletion that finds nothing was done by the first attempt', () => {
  const model = newClientModel({});
  const [created] = explain(model, group(secret('secret1')), [ok]);
  const deletion = group({ command: 'delete secret', on: 'secret1', label: null, body: null });
  const gone = explain(created!, deletion, [{ ...refusal('NotFound', 404), isRepeat: true }]);
  expect(gone.map(({ entities }) => entities['secret1'])).toEqual([undefined]);
  expect(explain(created!, deletion, [refusal('NotFound', 404)])).toEqual([]);
});

it('two deletions of a registry at the same time both succeed, and one after the other does not', () => {
  const registry: Step = {
    command: 'create registry',
    on: null,
    label: 'registry1',
    body: { name: 'r', storage_limit: 1 },
  };
  const [created] = explain(newClientModel({}), group(registry), [ok]);
  const deletion: Step = { command: 'delete registry', on: 'registry1', label: null, body: null };
  const both = explain(created!, group(deletion, deletion), [ok, ok]);
  expect(both.map(({ entities }) => entities['registry1'])).toEqual([undefined]);
  expect(explain(both[0]!, group(deletion), [ok])).toEqual([]);
});

it('two deletions of an access rule at the same time both succeed, and one after the other does not', () => {
  const subnet = { network_id: '@network0', subnet_id: '@subnet0' };
  const share: Step = {
    command: 'create share',
    on: null,
    label: 'share1',
    body: { name: 's', protocol: 'NFS', size: 1, network: subnet },
  };
  const access = { ip_address: '10.0.0.1', access_mode: 'ro' };
  const rule: Step = { command: 'create access rule', on: 'share1', label: 'rule1', body: access };
  const [withShare] = explain(newClientModel({}), group(share), [ok]);
  const [created] = explain(withShare!, group(rule), [ok]);
  const deletion: Step = { command: 'delete rule', on: 'rule1', label: null, body: null };
  const both = explain(created!, group(deletion, deletion), [ok, ok]);
  expect(both.map(({ entities }) => entities['rule1'])).toEqual([undefined]);
  expect(explain(both[0]!, group(deletion), [ok])).toEqual([]);
});

it('a snapshot that is being deleted with its volume is refused as the source of another volume', () => {
  const body = { name: 'v', size: 1, tags: {} };
  const create: Step = {
    command: 'create volume',
    on: null,
    label: 'volume1',
    body: { ...body, source: 'new-volume' },
  };
  const [withVolume] = explain(newClientModel({}), group(create), [ok]);
  const source = { name: 's', volume_id: '@volume1', tags: {} };
  const take: Step = { command: 'create snapshot', on: null, label: 'snapshot1', body: source };
  const [created] = explain(withVolume!, group(take), [ok]);
  const copy: Step = { ...create, label: 'volume2', body: { ...body, source: 'snapshot', snapshot_id: '@snapshot1' } };
  const deletion: Step = { command: 'delete volume', on: 'volume1', label: null, body: null };
  const left = explain(created!, group(copy, deletion), [refusal('Conflict'), ok]);
  expect(left.map(({ entities }) => Object.keys(entities))).toEqual([['network0', 'subnet0']]);
  expect(explain(created!, group(copy), [refusal('Conflict')])).toEqual([]);
});

it('a rule of an L7 policy that is being deleted is refused a change', () => {
  const step = (command: string, on: string | null, label: string | null, body: Step['body']): Step => {
    return { command, on, label, body };
  };
  const subnet = { vip_network_id: '@network0', vip_subnet_id: '@subnet0' };
  const path = { type: 'PATH', compare_type: 'STARTS_WITH', value: '/a' };
  const built = [
    step('create balancer', null, 'balancer1', { name: 'b', ...subnet, tags: {} }),
    step('create listener', null, 'listener1', {
      load_balancer_id: '@balancer1',
      name: 'l',
      protocol: 'HTTP',
      protocol_port: 80,
    }),
    step('create L7 policy', null, 'policy1', { listener_id: '@listener1', name: 'p', action: 'REJECT' }),
    step('create L7 rule', 'policy1', 'rule1', path),
  ].reduce((model, each) => explain(model, group(each), [ok])[0]!, newClientModel({}));
  const update = step('update L7 rule', 'rule1', null, { ...path, value: '/b' });
  const deletion = step('delete l7policy', 'policy1', null, null);
  const left = explain(built, group(update, deletion), [refusal('Conflict'), ok]);
  expect(left.map(({ entities }) => Object.keys(entities).includes('rule1'))).toEqual([false]);
  expect(explain(built, group(update), [refusal('Conflict')])).toEqual([]);
});
