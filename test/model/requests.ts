/** Sends the requests of a story, and waits for their tasks. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpAnswer } from '../http-client.ts';
import type { Observed } from './expectation.ts';
import { kindOfLabel, type Model, type Step } from './model.ts';
import { commandOf, kindOf } from './resources/list.ts';
import type { Tenant, World } from './world.ts';

/** A story in progress: its client, and the ids of its labels. */
export interface Played {
  world: Pick<World, 'yard'> & Partial<World>;
  tenant: Tenant;
  ids: Map<string, string>;
  /** Whether processes are disturbed: requests are repeated and responses are late. */
  disturbed: boolean;
  /** How long a request, a task or a state may take while processes are disturbed. */
  patienceSeconds: number;
}

/** Of a read. */
const readSeconds = 90;

export interface Answer extends HttpAnswer {
  isRepeat: boolean;
}

/** A resource that was never created has an id that does not exist. */
const unknownId = (label: string) =>
  kindOf(kindOfLabel(label))?.hasIntegerIds ? '999999999' : '00000000-0000-4000-8000-000000000000';

/** Sends a step until it is answered. Clients that get no response, or 503, send the same request again. */
export async function send({ world, tenant, ids, patienceSeconds }: Played, model: Model, step: Step): Promise<Answer> {
  const command = commandOf(step.command);
  const idOf = (label: string | null | undefined) => encodeURIComponent(ids.get(label ?? '') ?? unknownId(label ?? ''));
  const on = model.entities[step.on ?? ''] ?? model.gone[step.on ?? ''];
  const path = command.path
    .replace('{scope}', `${tenant.projectId}/1`)
    .replace('{client}', String(tenant.clientId))
    .replace('{on}', idOf(step.on))
    .replace('{parent}', idOf(on?.parent ?? kindOf(kindOfLabel(step.on ?? ''))?.parent));
  const body = step.body === null ? undefined : withIds(step.body, ids);
  const key = { 'idempotency-key': crypto.randomUUID() };
  const options = {
    ...(!command.operator && { token: tenant.token }),
    ...(command.method === 'POST' && { headers: key }),
  };
  const deadline = performance.now() + patienceSeconds * 1000;
  for (let isRepeat = false; ; isRepeat = true) {
    const answer = await world.yard
      .request(command.method, path, body, options)
      .catch((error: unknown) => error as Error);
    if (!(answer instanceof Error) && answer.status !== 503) {
      if (step.label !== null && answer.status < 300) await rememberId(world, tenant, ids, step, answer);
      return { ...answer, isRepeat };
    }
    if (performance.now() > deadline)
      throw new Error(`not answered within ${patienceSeconds} s: ${command.method} ${path}`);
    await sleep(50);
  }
}

/** A body with ids in place of labels. */
function withIds(value: unknown, ids: Map<string, string>): unknown {
  if (typeof value === 'string' && value.startsWith('@')) {
    const id = ids.get(value.slice(1)) ?? unknownId(value.slice(1));
    return /^\d+$/.test(id) ? Number(id) : id;
  }
  if (Array.isArray(value)) return value.map((each) => withIds(each, ids));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withIds(each, ids)]));
}

async function rememberId(
  { yard }: Played['world'],
  { token }: Tenant,
  ids: Map<string, string>,
  step: Step,
  { body }: HttpAnswer,
) {
  const kind = kindOf(commandOf(step.command).creates!);
  if (!kind.createdAs) {
    ids.set(step.label!, String(kind.id?.(body) ?? body.id));
    return;
  }
  const task = await insist(() => yard.get(`/cloud/v1/tasks/${body.tasks[0]}`, { token }));
  ids.set(step.label!, task.body.created_resources[kind.createdAs][0]);
}

/** Repeats a read until it is answered. */
export async function insist(read: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
  const deadline = performance.now() + readSeconds * 1000;
  for (;;) {
    const answer = await read().catch(() => null);
    if (answer && answer.status < 500) return answer;
    if (answer && answer.status !== 503) throw new Error(`server error: ${textOf(answer)}`);
    if (performance.now() > deadline) throw new Error(`not answered within ${readSeconds} s`);
    await sleep(50);
  }
}

export async function allTasksEnded({ world, tenant, patienceSeconds }: Played): Promise<void> {
  const path = `/cloud/v1/tasks/${tenant.projectId}/1/active`;
  const deadline = performance.now() + patienceSeconds * 1000;
  for (;;) {
    const { body } = await insist(() => world.yard.get(path, { token: tenant.token }));
    if (body.count === 0) return;
    if (performance.now() > deadline) throw new Error(`stuck: ${JSON.stringify(body.results)}`);
    await sleep(20);
  }
}

export const toObserved = ({ status, body, isRepeat }: Answer): Observed => ({
  status,
  isRepeat,
  ...(body?.exception_class !== undefined && { code: body.exception_class as string }),
});

export const textOf = ({ status, body }: Pick<HttpAnswer, 'status' | 'body'>) => `${status} ${JSON.stringify(body)}`;
