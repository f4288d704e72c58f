/** Compares the described resources with those on the server. Pure: what it needs of the server is an argument. */
import { valueAt } from '../output.ts';
import { type Operation, propertiesOf } from '../table.ts';
import { isEqual } from './equality.ts';
import { accessRules, type Kind, policyVolumes } from './kinds.ts';

export interface Live extends Record<string, unknown> {
  id?: string | number;
  name?: string;
}

export interface FieldChange {
  field: string;
  from: unknown;
  to: unknown;
}

/** A request that brings a resource closer to its description. */
export interface Step {
  operation: Operation;
  /** Values of further path parameters. */
  values?: Record<string, string>;
  body?: Record<string, unknown>;
}

interface Plan {
  changes: FieldChange[];
  steps: Step[];
  /** Fields that differ and cannot change. */
  fixed: FieldChange[];
}

/** `spec` with ids in place of the names of existing resources. */
export function planUpdate(kind: Kind, spec: Record<string, unknown>, live: Live): Plan {
  const plan: Plan = { changes: [], steps: [], fixed: [] };
  const patch: Record<string, unknown> = {};
  const updatable = kind.update?.body ? propertiesOf(kind.update.body) : new Map<string, unknown>();
  for (const [field, wanted] of Object.entries(spec)) {
    if (kind.name === accessRules.kind && field === accessRules.field) {
      planRules(wanted as Rule[], (live[field] ?? []) as LiveRule[], plan);
      continue;
    }
    if (kind.name === policyVolumes.kind && field === policyVolumes.field) {
      planVolumes(wanted as string[], (live['volumes'] ?? []) as { volume_id: string }[], plan);
      continue;
    }
    if (kind.creationOnly.includes(field)) continue;
    const isTags = kind.tagged && (field === 'tags' || field === 'metadata');
    const change = isTags ? tagChange(wanted, live) : fieldChange(kind.liveFields[field] ?? field, wanted, live);
    if (!change) continue;
    const action = kind.actions[field];
    const updated = isTags ? 'tags' : field;
    if (action ? isShrink(action, change) : !updatable.has(updated)) {
      plan.fixed.push({ field, from: change.from, to: change.to });
      continue;
    }
    if (action) plan.steps.push({ operation: action, body: { [field]: wanted } });
    else patch[updated] = isTags ? change.patch : wanted;
    plan.changes.push({ field, from: change.from, to: change.to });
  }
  if (Object.keys(patch).length > 0) plan.steps.unshift({ operation: kind.update!, body: patch });
  return plan;
}

/** Shares and volumes only grow. Other actions, such as a resize, take any value. */
function isShrink({ command }: Operation, { from, to }: Change): boolean {
  return command.at(-1) === 'extend' && Number(to) < Number(from);
}

interface Change {
  from: unknown;
  to: unknown;
  patch?: Record<string, unknown>;
}

/** Fields that the API does not return, such as passwords, cannot be compared. */
function fieldChange(path: string, wanted: unknown, live: Live): Change | undefined {
  const value = valueAt(live, path);
  return value === undefined || isEqual(wanted, value) ? undefined : { from: value, to: wanted };
}

/** All tags but those of the system: omitted ones are removed. */
function tagChange(wanted: unknown, live: Live): Change | undefined {
  const to = (wanted ?? {}) as Record<string, string>;
  const from = tagsOf(live);
  const removed = Object.keys(from).filter((key) => !(key in to));
  const changed = Object.entries(to).filter(([key, value]) => from[key] !== value);
  if (removed.length + changed.length === 0) return undefined;
  return {
    from,
    to,
    patch: { ...Object.fromEntries(removed.map((key) => [key, null])), ...Object.fromEntries(changed) },
  };
}

function tagsOf(live: Live): Record<string, string> {
  // Load balancers have their tags in tags_v2.
  const tags = (live['tags_v2'] ?? live['tags'] ?? []) as { key: string; value: string; read_only?: boolean }[];
  return Object.fromEntries(tags.filter((tag) => !tag.read_only).map(({ key, value }) => [key, value]));
}

interface Rule {
  ip_address: string;
  access_mode: string;
}

interface LiveRule {
  id: string;
  access_to: string;
  access_level: string;
}

function planRules(wanted: Rule[], live: LiveRule[], plan: Plan): void {
  const isSame = (rule: Rule, other: LiveRule) =>
    isEqual(rule.ip_address, other.access_to) && rule.access_mode === other.access_level;
  const surplus = live.filter((rule) => !wanted.some((other) => isSame(other, rule)));
  const missing = wanted.filter((rule) => !live.some((other) => isSame(rule, other)));
  if (surplus.length + missing.length === 0) return;
  plan.changes.push({
    field: accessRules.field,
    from: live.map((rule) => `${rule.access_to} ${rule.access_level}`),
    to: wanted.map((rule) => `${rule.ip_address} ${rule.access_mode}`),
  });
  // An address has one rule, so the old one goes first.
  for (const { id } of surplus) plan.steps.push({ operation: accessRules.remove(), values: { access_rule_id: id } });
  for (const { ip_address, access_mode } of missing) {
    plan.steps.push({ operation: accessRules.create(), body: { ip_address, access_mode } });
  }
}

/** `wanted` has the names of volumes that the files create: they have no ID yet. */
function planVolumes(wanted: string[], live: { volume_id: string }[], plan: Plan): void {
  const { field, add, remove } = policyVolumes;
  const from = live.map(({ volume_id }) => volume_id);
  const surplus = from.filter((id) => !wanted.includes(id));
  const missing = wanted.filter((id) => !from.includes(id));
  if (surplus.length + missing.length === 0) return;
  plan.changes.push({ field, from, to: wanted });
  if (surplus.length > 0) plan.steps.push({ operation: remove(), body: { volume_ids: surplus } });
  if (missing.length > 0) plan.steps.push({ operation: add(), body: { volume_ids: missing } });
}

export interface Tag {
  key: string;
  value: string;
}

/** Resources with the tag that no file describes. */
export function surplusOf(live: Live[], described: Set<string>, { key, value }: Tag): Live[] {
  return live.filter((resource) => !described.has(resource.name ?? '') && tagsOf(resource)[key] === value);
}
