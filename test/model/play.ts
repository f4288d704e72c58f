/**
 * Plays a story: sends its steps to the server, group by group, disturbs the processes as the story says, and compares responses,
 * resources, counters and the host with the model after each group.
 */
import { compare } from './compare.ts';
import { explain, expectStep } from './expectation.ts';
import { emptyModel, type Group, type Model, type Step, type Story } from './model.ts';
import { allTasksEnded, type Answer, insist, type Played, send, textOf, toObserved } from './requests.ts';
import { commandOf } from './resources/list.ts';
import type { Tenant, World } from './world.ts';

export interface Failure {
  /** The index of the group that failed. */
  at: number;
  message: string;
}

/** The model of a new client. */
export function newClientModel(limits: Record<string, number>): Model {
  const model: Model = { ...emptyModel(), limits: { ...limits } };
  const tags = {};
  const network = { name: 'default', type: 'vxlan', tags };
  const cidr = { cidr: '192.168.10.0/24', gateway: '192.168.10.1', dhcp: true };
  model.entities['network0'] = { kind: 'network', label: 'network0', parent: null, fields: network };
  const subnet = { name: 'default', ...cidr, network: '@network0', tags: {} };
  model.entities['subnet0'] = { kind: 'subnet', label: 'subnet0', parent: 'network0', fields: subnet };
  return model;
}

export async function play(world: World, story: Story, limits: Record<string, number>): Promise<Failure | null> {
  await world.recovered();
  const tenant = await world.newTenant(limits);
  return playAs(world, tenant, story, limits).finally(() => deletePolicies(world, tenant));
}

/** Otherwise they would run whenever a later story advances the clock. */
async function deletePolicies({ yard }: World, { projectId, token }: Tenant): Promise<void> {
  const path = `/cloud/v1/lifecycle_policy/${projectId}/1`;
  const { body } = await insist(() => yard.get(path, { token }));
  for (const { id } of body.results) await insist(() => yard.delete(`${path}/${id}`, { token }));
}

async function playAs(
  world: World,
  tenant: Tenant,
  story: Story,
  limits: Record<string, number>,
): Promise<Failure | null> {
  const ids = new Map([
    ['network0', tenant.networkId],
    ['subnet0', tenant.subnetId],
  ]);
  let model = newClientModel(limits);
  for (const [at, group] of story.entries()) {
    const played = { world, tenant, ids, disturbed: group.disturbance !== undefined, patienceSeconds: 60 };
    const result = await playGroup(played, model, group).catch((error: unknown) => String(error));
    if (typeof result === 'string') {
      await world.yard.delete('/cloudyard/v1/dev/faults').catch(() => {});
      return { at, message: result };
    }
    model = result;
  }
  return null;
}

/** Returns the model afterwards, or the difference. */
async function playGroup(played: Played & { world: World }, model: Model, group: Group): Promise<Model | string> {
  const { world } = played;
  if (group.fault && expectStep(model, group.steps[0]!).reply.status >= 300)
    return playGroup(played, model, { steps: group.steps });
  if (group.fault) await injectFault(played, group.steps[0]!);
  const sending = Promise.all(group.steps.map((step) => send(played, model, step)));
  if (group.disturbance) await world.disturb(group.disturbance, sending);
  const answers = await sending;
  await allTasksEnded(played);
  if (group.disturbance) await world.recovered();
  const broken = answers.find(({ status }) => status >= 500);
  if (broken) return `server error: ${textOf(broken)}`;
  const wrongTask = await firstWrongTask(played, group, answers);
  if (wrongTask) return wrongTask;
  if (group.fault) await world.yard.delete('/cloudyard/v1/dev/faults');
  const models = explain(model, group, answers.map(toObserved));
  if (models.length === 0) return `responses differ from the model:\n${responsesText(model, group, answers)}`;
  return compare(played, models);
}

async function injectFault({ world }: Played, step: Step): Promise<void> {
  const { resource, operation } = commandOf(step.command).fault!;
  const answer = await world.yard.post('/cloudyard/v1/dev/faults', { resource, operation, mode: 'fail' });
  if (answer.status >= 300) throw new Error(`no fault: ${textOf(answer)}`);
}

async function firstWrongTask({ world, tenant }: Played, group: Group, answers: Answer[]): Promise<string | null> {
  const expected = group.fault ? 'ERROR' : 'FINISHED';
  for (const id of answers.flatMap(({ status, body }) => (status < 300 && body?.tasks) || [])) {
    const { body } = await insist(() => world.yard.get(`/cloud/v1/tasks/${id}`, { token: tenant.token }));
    if (body.state !== expected) return `a task is ${body.state} in place of ${expected}: ${JSON.stringify(body)}`;
  }
  return null;
}

function responsesText(model: Model, group: Group, answers: Answer[]): string {
  return group.steps
    .map((step, i) => {
      const { reply } = expectStep(model, step, group.fault);
      const expected = `${reply.status} ${reply.code ?? ''}`.trim();
      const target = step.on === null ? '' : ` ${step.on}`;
      return `  ${step.command}${target} ${JSON.stringify(step.body)}: expected ${expected}, got ${textOf(answers[i]!)}`;
    })
    .join('\n');
}
