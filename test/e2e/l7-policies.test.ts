/**
 * L7 policies of a running load balancer: changes do not disturb the clients of the listener, and after `kill -9` of a worker
 * in the middle of changes every task ends and HAProxy does what the rows say.
 */
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { requestTo, startTraffic } from '../traffic.ts';
import { balancers, type Members, openMembers, pools } from './balanced.ts';
import { storm, type Storm } from './storm.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const parts = ['haproxy', 'root'] as const;
const policies = '/cloud/v1/l7policies/1/1';
const connections = 50;
const actions = ['REJECT', 'REDIRECT_TO_URL', 'REDIRECT_PREFIX', 'REDIRECT_TO_POOL'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'L7 policies', () => {
  let yard: Yard;
  let server: Running;
  let members: Members;
  let address: string;
  let port: number;
  let listener: string;
  let pool: string;

  beforeAll(async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy' });
    server = await yard.start(['start']);
    members = await openMembers();
    port = await freePort();
    const aPool = (n: number) => ({
      name: 'a pool',
      protocol: 'HTTP',
      lb_algorithm: 'ROUND_ROBIN',
      members: [members.member(n)],
    });
    const web = { name: 'web', protocol: 'HTTP', protocol_port: port, pools: [aPool(0)] };
    const made = await finished(await yard.post(balancers, { name: 'busy', listeners: [web] }));
    const [balancer] = made.loadbalancers as [string];
    [listener] = made.listeners as [string];
    address = (await yard.get(`${balancers}/${balancer}`)).body.vip_address;
    [pool] = (await finished(await yard.post(pools, { ...aPool(1), load_balancer_id: balancer }))).pools as [string];
  });
  afterAll(() => {
    yard?.cleanUp();
    members?.close();
  });

  async function finished(answer: Parameters<Yard['ended']>[0]) {
    const task = await yard.ended(answer);
    expect(task).toMatchObject({ state: 'FINISHED', error: null });
    return task.created_resources;
  }

  /** What clients get: the status, and the target of a redirect or the address of the member. */
  const answerTo = (path: string) =>
    new Promise<string>((resolve, reject) => {
      const sent = request({ host: address, port, path, agent: false, timeout: 5000 }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        const { statusCode, headers } = response;
        response.once('end', () => resolve(`${statusCode} ${headers.location ?? (statusCode === 200 ? text : '')}`));
      });
      sent.once('error', reject).once('timeout', () => sent.destroy(new Error('no response within 5 s')));
      sent.end();
    });
  const byDefault = () => `200 ${members.member(0).address}`;

  const targets = (n: number) => ({
    REJECT: {},
    REDIRECT_TO_URL: { redirect_url: `http://url.test/${n}` },
    REDIRECT_PREFIX: { redirect_prefix: `http://prefix.test/${n}` },
    REDIRECT_TO_POOL: { redirect_pool_id: pool },
  });
  const settings = (n: number, action = actions[n % actions.length]!) => ({ action, ...targets(n)[action] });
  const rule = (n: number) => ({ type: 'PATH', compare_type: 'EQUAL_TO', value: `/policy-${n}` });

  /** What the row of a policy says that clients get for a path that its rules match. */
  function expectedOf(policy: Record<string, string>, path: string): string {
    const code = policy['redirect_http_code'];
    if (policy['action'] === 'REJECT') return '403 ';
    if (policy['action'] === 'REDIRECT_TO_URL') return `${code} ${policy['redirect_url']}`;
    if (policy['action'] === 'REDIRECT_PREFIX') return `${code} ${policy['redirect_prefix']}${path}`;
    return `200 ${members.member(1).address}`;
  }

  it('change at once, and fail no request on 50 kept connections', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    const load = startTraffic(() => requestTo(address, port, agent), connections);
    for (let n = 0; n < actions.length; n++) {
      const body = { ...settings(n), listener_id: listener, position: 1 };
      const { l7polices } = await finished(await yard.post(policies, body));
      const path = `${policies}/${l7polices[0]}`;
      const { l7rules } = await finished(await yard.post(`${path}/rules`, rule(n)));
      expect(await answerTo(`/policy-${n}`)).toBe(expectedOf((await yard.get(path)).body, `/policy-${n}`));
      await finished(await yard.patch(path, settings(n + 100, actions[(n + 1) % actions.length])));
      expect(await answerTo(`/policy-${n}`)).toBe(expectedOf((await yard.get(path)).body, `/policy-${n}`));
      const moved = { value: `/moved-${n}`, compare_type: 'STARTS_WITH' };
      await finished(await yard.request('PUT', `${path}/rules/${l7rules[0]}`, moved));
      expect(await answerTo(`/policy-${n}`)).toBe(byDefault());
      expect(await answerTo(`/moved-${n}/x`)).toBe(expectedOf((await yard.get(path)).body, `/moved-${n}/x`));
      if (n % 2 === 0) await finished(await yard.delete(path));
      expect((await answerTo(`/moved-${n}`)) === byDefault()).toBe(n % 2 === 0);
    }
    await load.stop();
    agent.destroy();
    expect(load.failures()).toEqual([]);
    expect(load.answered()).toBeGreaterThan(20 * connections);
    for (const { id } of (await yard.get(policies)).body.results)
      await finished(await yard.delete(`${policies}/${id}`));
  });

  it('are served as the rows say after a worker is killed in the middle of changes', async () => {
    expect((await server.stop()).code).toBe(0);
    server = await yard.start(['serve']);
    let worker = await yard.start(['worker', '--region', '1']);
    const load = startTraffic(() => requestTo(address, port));
    const count = 24;
    const ids: string[] = [];
    const created = async (n: number) => {
      const answer = await yard.insist('POST', policies, { ...settings(n), listener_id: listener });
      const { body: task } = await yard.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`);
      ids[n] = task.created_resources.l7polices[0];
      return answer;
    };
    const numbers = Array.from({ length: count }, (_, n) => n);
    const rounds = [
      () => storm(numbers.map((n) => () => created(n))),
      () => storm(numbers.map((n) => () => yard.insist('POST', `${policies}/${ids[n]}/rules`, rule(n)))),
      () => storm(numbers.map((n) => () => changeOf(ids[n]!, n))),
    ];
    const all: Storm[] = [];
    for (const round of rounds) {
      const changes = round();
      all.push(changes);
      await changes.reached(count / 2);
      await worker.kill();
      worker = await yard.start(['worker', '--region', '1']);
      await changes.answers;
    }
    const answers = (await Promise.all(all.map((each) => each.answers))).flat();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    for (const answer of answers) if (answer.body.tasks.length > 0) await yard.ended(answer);
    expect(await yard.sql(`select id, state, error from tasks where state <> 'FINISHED'`)).toEqual([]);
    expect(await yard.sql('select id from load_balancers where observed_generation < generation')).toEqual([]);
    await expectClientsGetTheRows(ids);
    await load.stop();
    expect(load.failures()).toEqual([]);
    expect((await worker.stop()).code).toBe(0);
  });

  /** One third changes its action, one third moves, and one third is deleted. */
  const changeOf = (id: string, n: number) => {
    if (n % 3 === 0) return yard.insist('DELETE', `${policies}/${id}`);
    const action = actions[(n + (n % 3 === 1 ? 1 : 0)) % actions.length];
    return yard.insist('PATCH', `${policies}/${id}`, { ...settings(n + 100, action), position: 1 + (n % 5) });
  };

  async function expectClientsGetTheRows(ids: string[]): Promise<void> {
    const { results } = (await yard.get(policies)).body;
    expect(results).toHaveLength((ids.length * 2) / 3);
    const positions = results.map(({ position }: { position: number }) => position);
    expect(positions.sort((a: number, b: number) => a - b)).toEqual(results.map((_: unknown, i: number) => i + 1));
    const [got, rows]: [string[], string[]] = [[], []];
    for (const [n, id] of ids.entries()) {
      const row = results.find((policy: { id: string }) => policy.id === id);
      if (row) expect(row).toMatchObject({ provisioning_status: 'ACTIVE', rules: [{}] });
      rows.push(row ? expectedOf(row, `/policy-${n}`) : byDefault());
      got.push(await answerTo(`/policy-${n}`));
    }
    expect(got).toEqual(rows);
  }
});
