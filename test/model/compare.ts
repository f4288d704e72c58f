/** Compares the server and the host with models, of which one must match. */
import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { usageOf } from './expectation.ts';
import { type Fields, type Kind, kindOfLabel, type Model } from './model.ts';
import { insist, type Played } from './requests.ts';
import { kinds } from './resources/list.ts';

/** Comparable state: resources by kind and label, usage by kind of quota, the host by folder and label, and the drift. */
type State = Record<string, Record<string, unknown>>;

const undisturbedSeconds = 10;

/** Returns the first model that matches, or the difference from the first model. Changes without a task take a moment. */
export async function compare(played: Played, models: Model[]): Promise<Model | string> {
  const hasHost = played.world.host !== undefined;
  const deadline = performance.now() + 1000 * (played.disturbed ? played.patienceSeconds : undisturbedSeconds);
  for (let wait = 5; ; wait = Math.min(500, wait * 2)) {
    const observed = await observe(played, models[0]!);
    const found = models.find((model) => isDeepStrictEqual(expectedState(model, hasHost), observed));
    if (found) return found;
    if (performance.now() > deadline)
      return `state differs from the model:\n${difference(expectedState(models[0]!, hasHost), observed)}`;
    await sleep(wait);
  }
}

function expectedState(model: Model, hasHost: boolean): State {
  const state: State = {};
  for (const kind of kinds) {
    const entities = Object.values(model.entities).filter((entity) => entity.kind === kind.name);
    const all = entities.map((entity) => [entity.label, kind.expected?.(entity, model) ?? entity.fields] as const);
    state[kind.name] = kind.countBy ? countOf(entities.map(kind.countBy.expected)) : Object.fromEntries(all);
    if (!kind.host || !hasHost) continue;
    const onHost = entities.flatMap((entity) => {
      const expected = kind.host!.expected(entity, model);
      return expected ? [[entity.label, expected] as const] : [];
    });
    state[`host of ${kind.name}`] = Object.fromEntries(onHost);
  }
  const usage = Object.entries(usageOf(model)).filter(([, amount]) => amount > 0);
  return { ...state, usage: Object.fromEntries(usage), drift: {} };
}

async function observe(played: Played, model: Model): Promise<State> {
  // Integer ids of different kinds coincide. A reference is a UUID.
  const byKind = Map.groupBy(played.ids, ([label]) => kindOfLabel(label));
  const reversed = (ids: Iterable<[string, string]>) => new Map([...ids].map(([label, id]) => [id, label]));
  const labels = reversed(played.ids);
  const host = played.world.host?.();
  const state: State = {};
  const lists = kinds.map(async (kind) => {
    state[kind.name] = await observeKind(played, kind, model, { own: reversed(byKind.get(kind.name) ?? []), labels });
    if (kind.host && host) state[`host of ${kind.name}`] = hostOf(kind, host[kind.host.folder]!, labels);
  });
  await Promise.all(lists);
  return { ...state, usage: await observeUsage(played), drift: await observeDrift(played) };
}

/** Labels by id: of one kind, and of all. */
type Labels = Record<'own' | 'labels', Map<string, string>>;

/** The items of a kind by label. An item without a label has its id: it was created twice. */
async function observeKind(played: Played, kind: Kind, model: Model, { own, labels }: Labels) {
  const label = (id: unknown) => (labels.has(String(id)) ? `@${labels.get(String(id))}` : String(id));
  const parents = kind.parent ? Object.values(model.entities).filter((entity) => entity.kind === kind.parent) : [null];
  const found: Record<string, unknown> = {};
  const counted: string[] = [];
  for (const parent of parents) {
    const results = await list(played, kind, parent?.label);
    for (const result of results) {
      const comparable = kind.observe(result, label);
      if (comparable && kind.countBy) counted.push(kind.countBy.observed(result, label));
      else if (comparable) {
        const id = String(kind.id?.(result) ?? result['id']);
        found[own.get(id) ?? id] = comparable;
      }
    }
  }
  return kind.countBy ? countOf(counted) : found;
}

async function list({ world, tenant, ids }: Played, kind: Kind, parent: string | undefined): Promise<Fields[]> {
  const path = kind.list
    .replace('{scope}', `${tenant.projectId}/1`)
    .replace('{client}', String(tenant.clientId))
    .replace('{parent}', ids.get(parent ?? '') ?? '');
  const { status, body } = await insist(() => world.yard.get(path, { token: tenant.token }));
  if (status === 404) return [];
  return Array.isArray(body) ? body : body.results;
}

function hostOf(kind: Kind, folder: Map<string, Fields>, labels: Map<string, string>): Record<string, Fields> {
  const found = [...folder].filter(([id]) => labels.has(id));
  return Object.fromEntries(found.map(([id, desired]) => [labels.get(id)!, kind.host!.observe(desired)]));
}

const countOf = (texts: string[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(texts, (text) => text)].map(([text, all]) => [text, all.length]));

/** Usage in region 1 and everywhere, without the default project. */
async function observeUsage({ world, tenant }: Played): Promise<Record<string, number>> {
  const { body } = await insist(() => world.yard.get('/cloud/v2/client_quotas', { token: tenant.token }));
  const regional = body.regional_quotas.find(({ region_id }: Fields) => region_id === 1);
  const figures: Record<string, number> = { ...body.global_quotas, ...regional };
  figures['project_count_usage']! -= 1;
  const used = Object.entries(figures).filter(([name, amount]) => name.endsWith('_usage') && amount > 0);
  return Object.fromEntries(used.map(([name, amount]) => [name.slice(0, -'_usage'.length), amount]));
}

/** Counters that differ from the rows. Those of other clients would make a shortened story fail for another reason. */
async function observeDrift({ world, tenant }: Played): Promise<Record<string, unknown>> {
  const { body } = await insist(() => world.yard.get('/cloudyard/v1/quota_audit'));
  const own = body.results.filter((each: Fields) => each['client_id'] === tenant.clientId);
  return Object.fromEntries(own.map((each: Fields) => [each['kind'], each]));
}

/** The differences by path, one on a line. */
function difference(expected: State, observed: State): string {
  const lines: string[] = [];
  for (const [part, values] of Object.entries(observed)) {
    for (const label of new Set([...Object.keys(expected[part] ?? {}), ...Object.keys(values)])) {
      const [want, got] = [expected[part]?.[label], values[label]];
      if (!isDeepStrictEqual(want, got)) lines.push(`  ${part} ${label}: expected ${text(want)}, got ${text(got)}`);
    }
  }
  return lines.join('\n');
}

const text = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));
