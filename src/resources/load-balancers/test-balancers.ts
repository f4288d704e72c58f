/** Builders for tests of load balancers and their parts. */
import { expect, vi } from 'vitest';
import type { Answer, Cloudyard } from '../../../test/harness.ts';
import { invalidInput } from '../../errors/catalogue.ts';
import type { SecretReference } from './references.ts';

export const balancers = '/cloud/v1/loadbalancers/1/1';
export const listeners = '/cloud/v1/lblisteners/1/1';
export const pools = '/cloud/v1/lbpools/1/1';
export const v2 = (path: string) => path.replace('/v1/', '/v2/');

export const unknownId = '11111111-1111-4111-8111-111111111111';

type Body = Record<string, any>;

/** The paths of invalid fields. */
export const paths = (answer: Answer): string[] =>
  (answer.body.errors ?? []).map((error: { path: string }) => error.path);

export const member = (n: number, more: Body = {}): Body => ({
  address: `10.0.${Math.floor(n / 250)}.${(n % 250) + 1}`,
  protocol_port: 80,
  ...more,
});

export const monitor = (more: Body = {}): Body => ({ type: 'TCP', delay: 10, timeout: 5, max_retries: 2, ...more });

let made = 0;
/** Every port of a test file is different. */
export const freshPort = (): number => 1000 + made++;

export function builders(cloud: Cloudyard) {
  const created = async (answer: Answer, key: string): Promise<string> => {
    const task = await cloud.ended(answer);
    expect(task.body).toMatchObject({ state: 'FINISHED', error: null });
    return task.body.created_resources[key][0];
  };
  const aBalancer = async (body: Body = {}) =>
    created(await cloud.post(balancers, { name: 'a balancer', ...body }), 'loadbalancers');
  const aListener = async (balancer: string, body: Body = {}) => {
    const valid = { name: 'a listener', protocol: 'HTTP', protocol_port: freshPort(), load_balancer_id: balancer };
    return created(await cloud.post(listeners, { ...valid, ...body }), 'listeners');
  };
  const aPool = async (body: Body) => {
    const valid = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };
    return created(await cloud.post(pools, { ...valid, ...body }), 'pools');
  };
  return {
    created,
    aBalancer,
    aListener,
    aPool,
    getPool: async (id: string): Promise<Body> => (await cloud.get(`${pools}/${id}`)).body,
    getListener: async (id: string): Promise<Body> => (await cloud.get(`${listeners}/${id}`)).body,
    /** The numbers of listeners, pools, members and tasks, which rejected requests do not change. */
    async counts(): Promise<unknown> {
      const { rows } = await cloud.db.$client.query(
        `select (select count(*) from lb_listeners) as listeners, (select count(*) from lb_pools) as pools,
           (select count(*) from lb_members) as members, (select count(*) from tasks) as tasks,
           (select sum(generation) from load_balancers) as generations`,
      );
      return rows[0];
    },
  };
}

/** Simulates these secrets, each of one kind. Returns the requested references. */
export function knownSecrets(cloud: Cloudyard, known: Record<string, SecretReference['kind']>): SecretReference[] {
  const requested: SecretReference[] = [];
  vi.spyOn(cloud.services.secrets, 'holdForUse').mockImplementation(async (_tx, _where, wanted) => {
    requested.push(...wanted);
    const wrong = wanted.filter(({ id, kind }) => known[id] !== kind);
    if (wrong.length > 0)
      throw invalidInput(wrong.map(({ path }) => ({ path, message: 'is not a secret of this kind' })));
  });
  return requested;
}
