/**
 * Time from the change of an L7 policy to the response that its task is FINISHED, with 1,000 policies on the listener, while
 * 50 kept connections carry requests through it.
 */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createBalancer, listenersPath, policiesPath, startBalancing } from './balancers.ts';
import { createClient, finished } from './client.ts';
import { type Cloudyard, ended } from './cloudyard.ts';
import { missingHaproxy, startMembers } from './proxies.ts';
import { quiet } from './quiet.ts';
import { median } from './rounds.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const what = 'change an L7 policy of 1,000 to FINISHED, p50';
const whatFails = 'requests meanwhile, on 50 kept connections';
const policies = 1000;
const atOnce = 16;
const rounds = 4;
const changes = 50;
const connections = 50;
/** Between two requests of a connection: the load is to notice failures, not to use the processors. */
const pauseMs = 20;

export async function changePolicies(workplace: Workplace): Promise<Row[]> {
  if (missingHaproxy) return [{ what, why: missingHaproxy }];
  const cloudyard = await startBalancing(workplace, 'start');
  const member = await startMembers(workplace);
  const { url } = await createBalancer(cloudyard, [[member(0)]]);
  const ids = await createPolicies(cloudyard);
  const client = createClient(cloudyard);
  let version = 0;
  const change = () => {
    const n = version++;
    const redirect = { action: 'REDIRECT_TO_URL', redirect_url: `http://changed.test/${n}` };
    return finished(client, 'PATCH', `${policiesPath}/${ids[n % ids.length]}`, JSON.stringify(redirect));
  };
  const values: number[] = [];
  const load = startRequests(url);
  for (let i = 0; i < rounds; i++) {
    await quiet();
    const latencies: number[] = [];
    for (let j = 0; j < changes; j++) latencies.push(await change());
    values.push(median(latencies));
  }
  const { failed, done } = await load.end();
  return [
    { what, values, unit: 'ms', bar: { atMost: 300 } },
    { what: whatFails, measured: `${done} requests`, values: [failed], unit: 'failures', bar: { atMost: 0 } },
  ];
}

/** Each with one rule, which no request of the load matches. */
async function createPolicies(cloudyard: Cloudyard): Promise<string[]> {
  const { results } = await cloudyard.request('GET', listenersPath);
  const created = async (path: string, body: object, key: string) => {
    const { tasks } = await cloudyard.request('POST', path, body);
    return (await cloudyard.request('GET', `/cloud/v1/tasks/${tasks[0]}`)).created_resources[key][0] as string;
  };
  const ids: string[] = [];
  const numbers = Array.from({ length: policies }, (_, n) => n);
  const one = async () => {
    for (let n = numbers.shift(); n !== undefined; n = numbers.shift()) {
      const redirect = { action: 'REDIRECT_TO_URL', redirect_url: `http://first.test/${n}` };
      const id = await created(policiesPath, { ...redirect, listener_id: results[0].id }, 'l7polices');
      const rule = { type: 'PATH', compare_type: 'STARTS_WITH', value: `/policy-${n}/` };
      await created(`${policiesPath}/${id}/rules`, rule, 'l7rules');
      ids.push(id);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  await ended(cloudyard, await cloudyard.request('PATCH', `${policiesPath}/${ids[0]}`, { action: 'REJECT' }));
  return ids;
}

/** Requests that follow each other on kept connections. A response other than 200 counts as a failure. */
function startRequests(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  let [done, failed, ending] = [0, 0, false];
  const send = () =>
    new Promise<boolean>((resolve) => {
      const sent = request(url, { agent, timeout: 10_000 }, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode === 200));
        answer.on('error', () => resolve(false));
      });
      sent.on('error', () => resolve(false)).on('timeout', () => sent.destroy(new Error('timeout')));
      sent.end();
    });
  const connection = async () => {
    while (!ending) {
      if (await send()) done++;
      else failed++;
      await sleep(pauseMs);
    }
  };
  const running = Array.from({ length: connections }, connection);
  return {
    async end() {
      ending = true;
      await Promise.all(running);
      agent.destroy();
      return { done, failed };
    },
  };
}
