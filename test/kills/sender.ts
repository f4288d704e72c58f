/**
 * One client that sends random operations, one after another, and compares the server with the model (test/model) every now and
 * then. Every operation is repeated until it is answered.
 */
import { compare } from '../model/compare.ts';
import { explain } from '../model/expectation.ts';
import { newClientModel } from '../model/play.ts';
import { allTasksEnded, type Answer, insist, type Played, send, textOf, toObserved } from '../model/requests.ts';
import { createRandom } from '../model/random.ts';
import { commands } from '../model/resources/list.ts';
import { makeStep } from '../model/story.ts';
import type { Tenant } from '../model/world.ts';
import type { HttpAnswer } from '../http-client.ts';
import type { Yard } from '../processes.ts';
import type { Figures } from './figures.ts';

const stepsBetweenComparisons = 40;
/** A job whose attempts are interrupted backs off for minutes. */
const patienceSeconds = 300;
/** They keep the host small. */
export const limits = {
  sfs_count: 2,
  sfs_size: 6,
  volume_count: 2,
  volume_size: 6,
  loadbalancer_count: 2,
  registry_count: 2,
};

interface SenderOptions {
  seed: number;
  figures: Figures;
  isOver(): boolean;
  /** Whether the clock is moved meanwhile: then policies of the client would run, which its model does not know. */
  clockMoves?: boolean;
  /** Before each operation. */
  pause?(): Promise<unknown>;
}

/** Runs until `isOver`. Records what the server got wrong. */
export async function sendOperations(
  yard: Yard,
  tenant: Tenant,
  { seed, figures, isOver, clockMoves, pause }: SenderOptions,
): Promise<void> {
  const random = createRandom(seed);
  const ids = new Map([
    ['network0', tenant.networkId],
    ['subnet0', tenant.subnetId],
  ]);
  const played: Played = { world: { yard: counting(yard, figures) }, tenant, ids, disturbed: true, patienceSeconds };
  let model = newClientModel(limits);
  let count = 0;
  const choices = commands.filter(({ alone, creates }) => !alone && !(clockMoves && creates === 'policy'));
  const compared = async (): Promise<void> => {
    await allTasksEnded(played);
    const result = await compare(played, [model]);
    if (typeof result === 'string') throw new Error(result);
    figures.comparisons += 1;
  };
  try {
    while (!isOver()) {
      await pause?.();
      count += 1;
      const step = makeStep(random, model, () => count, choices);
      const answer = await send(played, model, step);
      const [next] = explain(model, { steps: [step] }, [toObserved(answer)]);
      if (!next) throw new Error(`${step.command} ${JSON.stringify(step.body)} was answered with ${textOf(answer)}`);
      model = next;
      figures.operations += 1;
      await allEnded(played, answer);
      if (count % stepsBetweenComparisons === 0) await compared();
    }
    await compared();
  } catch (error) {
    figures.failures.push(`client ${tenant.clientId}, seed ${seed}, operation ${count}: ${(error as Error).message}`);
  }
}

async function allEnded(played: Played, { status, body }: Answer): Promise<void> {
  const { yard } = played.world;
  const ids: string[] = (status < 300 && body?.tasks) || [];
  // Also where the response names a task: one whose attempts are interrupted may take longer than a request can wait. Reverts
  // and access rules name no task, and the task of a lost response is unknown.
  await allTasksEnded(played);
  for (const id of ids) {
    const task = await insist(() => yard.get(`/cloud/v1/tasks/${id}?wait=30`, { token: played.tenant.token }));
    if (task.body.state === 'ERROR') throw new Error(`a task failed: ${JSON.stringify(task.body)}`);
  }
}

/** The same client, which counts answers by status and requests without an answer. */
function counting(yard: Yard, figures: Figures): Yard {
  const request: Yard['request'] = async (...args) => {
    const answer: HttpAnswer = await yard.request(...args).catch((error: unknown) => {
      figures.unanswered += 1;
      throw error;
    });
    figures.statuses[answer.status] = (figures.statuses[answer.status] ?? 0) + 1;
    return answer;
  };
  return {
    ...yard,
    request,
    get: (path, options) => request('GET', path, undefined, options),
    delete: (path, options) => request('DELETE', path, undefined, options),
  };
}
