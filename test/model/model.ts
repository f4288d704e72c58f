/**
 * The model: what a client expects Cloudyard to remember, as plain data in memory, and the form in which each resource declares
 * its commands.
 *
 * A story is a list of groups of steps. Steps name resources by labels (`share3`), never by ids, so that a story can be shortened
 * and played again. In bodies and paths `@share3` is replaced by the id.
 */
import type { Random } from './random.ts';

export type Fields = Record<string, any>;

export interface Entity {
  kind: string;
  label: string;
  parent: string | null;
  fields: Fields;
}

export interface Model {
  /** By label. */
  entities: Record<string, Entity>;
  /** Labels of deleted resources, with their kind and parent. */
  gone: Record<string, Pick<Entity, 'kind' | 'parent'>>;
  /** Limits of the client by kind of quota; absent: practically unlimited. */
  limits: Record<string, number>;
  /** Hours by which the clock was advanced in this story. */
  hours: number;
}

export interface Step {
  command: string;
  /** The resource that the command works on. */
  on: string | null;
  /** The resource that it creates. */
  label: string | null;
  body: Fields | null;
}

/** What happens to the processes while the steps of a group run. */
export type Disturbance =
  /** The worker dies before or after the work of its next driver call, the server before it sends its next response. */
  | { kind: 'crash'; process: 'worker'; moment: 'before' | 'after' }
  | { kind: 'crash'; process: 'server' }
  | { kind: 'kill' | 'restart'; process: 'server' | 'worker' | 'postgres'; delayMs: number };

export interface Group {
  /** Sent at the same time. */
  steps: Step[];
  disturbance?: Disturbance;
  /** Whether the driver refuses the operation of the only step. */
  fault?: boolean;
}

export type Story = Group[];

/** An expected response; 200 is any success. `code` is `exception_class` of an error. */
export interface Reply {
  status: number;
  code?: string;
}

export interface Choice {
  model: Model;
  /** The resource that the command works on; absent for commands without `on`. */
  entity: Entity;
  random: Random;
  /** The label of the new resource. */
  label: string;
}

export interface Command {
  name: string;
  /** How often it is chosen, compared with others; 1 by default. */
  weight?: number;
  /** The kind of resource that it works on. */
  on?: string;
  /** The kind of resource that it creates. */
  creates?: string;
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{scope}`, `{client}`, `{on}` and `{parent}`. */
  path: string;
  /** Whether the operator sends it. */
  operator?: boolean;
  /** Whether nothing else may run at the same time. */
  alone?: boolean;
  /** Whether two at the same time both succeed, as if they were one. */
  joins?: boolean;
  when?(model: Model, entity: Entity): boolean;
  /** The body; null: the command cannot run now. Absent: no body. */
  body?(choice: Choice): Fields | null;
  /** Changes the model as the server must change its rows, and returns the expected response. */
  expect(model: Model, entity: Entity, step: Step): Reply;
  /** The operation of the driver that an injected fault refuses, and what the model is then, after `expect`. */
  fault?: { resource: string; operation: 'apply' | 'remove'; expect(model: Model, entity: Entity, step: Step): void };
}

export interface Kind {
  name: string;
  /** The path of its list, with `{scope}`, `{client}` and `{parent}`. */
  list: string;
  /** The kind of its parent, if the list has `{parent}`. */
  parent?: string;
  /** Its name in `created_resources` of tasks; absent: the response of the create has the id. */
  createdAs?: string;
  /** The id in a response or an item of the list; `id` by default. */
  id?(result: Fields): string;
  /** Whether ids are integers; otherwise they are UUIDs or names. */
  hasIntegerIds?: boolean;
  /** The comparable part of an item of the list; null: the item is not compared. `label` translates ids. */
  observe(result: Fields, label: (id: string) => string): Fields | null;
  /** The same from the model; `fields` by default. */
  expected?(entity: Entity, model: Model): Fields;
  /** What it counts in quotas. */
  usage?(entity: Entity): Record<string, number>;
  /** Compared by number only: items and entities are counted by this text. */
  countBy?: { observed(result: Fields, label: (id: string) => string): string; expected(entity: Entity): string };
  /** Its folder on the host, and the comparable part of the desired state there; null: nothing must be there. */
  host?: { folder: string; observe(desired: Fields): Fields; expected(entity: Entity, model: Model): Fields | null };
}

export interface Resource {
  kinds: Kind[];
  commands: Command[];
}

export const ok: Reply = { status: 200 };
export const refused = (status: number, code?: string): Reply => ({ status, ...(code !== undefined && { code }) });

export const emptyModel = (): Model => ({ entities: {}, gone: {}, limits: {}, hours: 0 });

export const entitiesOf = (model: Model, kind: string): Entity[] =>
  Object.values(model.entities).filter((entity) => entity.kind === kind);

/** The kind of a label. */
export const kindOfLabel = (label: string): string => label.replace(/\d+$/, '');

export const childrenOf = (model: Model, label: string): Entity[] =>
  Object.values(model.entities).filter((entity) => entity.parent === label);

/** Whether a field of another resource names this one. */
export const isUsed = (model: Model, label: string): boolean =>
  Object.values(model.entities).some(({ fields }) => Object.values(fields).includes(`@${label}`));

export function add(model: Model, kind: string, step: Step, fields: Fields, parent: string | null = null): void {
  model.entities[step.label!] = { kind, label: step.label!, parent, fields };
}

/** Removes a resource and everything below it. */
export function remove(model: Model, label: string): void {
  for (const child of childrenOf(model, label)) remove(model, child.label);
  const { kind, parent } = model.entities[label]!;
  model.gone[label] = { kind, parent };
  delete model.entities[label];
}

/** The resource that locks together with this one. */
export function rootOf(model: Model, label: string): string {
  const parent = (model.entities[label] ?? model.gone[label])?.parent;
  return parent ? rootOf(model, parent) : label;
}

/** Whether a resource is this one, or below it. */
export function isWithin(model: Model, label: string, above: string): boolean {
  const parent = (model.entities[label] ?? model.gone[label])?.parent;
  return label === above || (!!parent && isWithin(model, parent, above));
}

/** Labels that a body names. */
export function namedIn(value: unknown): string[] {
  if (typeof value === 'string') return value.startsWith('@') ? [value.slice(1)] : [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(namedIn) : [];
}
