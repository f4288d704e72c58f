/**
 * What the model says about responses: the expected response of one step, and the orders of simultaneous steps that explain all
 * their responses.
 */
import { type Group, isWithin, type Model, namedIn, refused, type Reply, rootOf, type Step } from './model.ts';
import { commandOf, kindOf } from './resources/list.ts';

/** A response, and whether an earlier attempt of the same request may have been executed without a response. */
export interface Observed extends Reply {
  isRepeat: boolean;
}

/** The limits that apply when the operator has set none are out of reach. */
const unlimited = Number.POSITIVE_INFINITY;

export function usageOf(model: Model): Record<string, number> {
  const usage: Record<string, number> = {};
  for (const entity of Object.values(model.entities)) {
    for (const [kind, amount] of Object.entries(kindOf(entity.kind).usage?.(entity) ?? {})) {
      usage[kind] = (usage[kind] ?? 0) + amount;
    }
  }
  return usage;
}

/** The expected response, and the model afterwards. */
export function expectStep(model: Model, step: Step, fault = false): { reply: Reply; after: Model } {
  const command = commandOf(step.command);
  if (step.on !== null && !model.entities[step.on]) return { reply: refused(404), after: model };
  if (namedIn(step.body).some((label) => !model.entities[label])) return { reply: refused(400), after: model };
  const after = structuredClone(model);
  const reply = command.expect(after, after.entities[step.on ?? '']!, step);
  if (reply.status >= 300) return { reply, after: model };
  const [before, now] = [usageOf(model), usageOf(after)];
  const exceeded = Object.keys(now).some(
    (kind) => now[kind]! > (before[kind] ?? 0) && now[kind]! > (after.limits[kind] ?? unlimited),
  );
  if (exceeded) return { reply: refused(409, 'QuotaExceeded'), after: model };
  if (fault) command.fault!.expect(after, after.entities[step.on ?? '']!, step);
  return { reply, after };
}

/** The models that explain the responses of a group, in any order of its steps. None: no order explains them. */
export function explain(model: Model, group: Group, observed: Observed[]): Model[] {
  const found = new Map<string, Model>();
  const visit = (current: Model, rest: number[]): void => {
    if (rest.length === 0) found.set(JSON.stringify(canonical(current)), current);
    for (const i of rest) {
      const others = rest.filter((other) => other !== i);
      for (const after of outcomes(current, group, i, observed[i]!)) visit(after, others);
    }
  };
  visit(
    model,
    group.steps.map((_, i) => i),
  );
  return [...found.values()];
}

/** With the fields of all objects in order, so that equal models have equal texts. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, each]) => [name, canonical(each)]);
}

/** The models after a step with this response; none if the response is wrong. */
function outcomes(model: Model, group: Group, i: number, observed: Observed): Model[] {
  const step = group.steps[i]!;
  const { reply, after } = expectStep(model, step, group.fault);
  const matches = matchesReply(reply, observed);
  if (matches) return [after];
  if (observed.status < 300 && joins(group, i)) return [after];
  // A repeated DELETE finds nothing; the first attempt was executed.
  const wasDone = observed.isRepeat && commandOf(step.command).method !== 'POST' && reply.status < 300;
  // The lock of a repeat may be that of its first attempt, or that of another step.
  if (group.steps.length > 1 && isTransient(model, group, i, observed)) return wasDone ? [model, after] : [model];
  return wasDone && [404, 409].includes(observed.status) ? [after] : [];
}

/** Whether a step waits for the same step that is under way, and ends like it. */
function joins({ steps }: Group, i: number): boolean {
  const { command, on } = steps[i]!;
  return (
    !!commandOf(command).joins && steps.some((other, j) => j !== i && other.command === command && other.on === on)
  );
}

function matchesReply(expected: Reply, { status, code }: Observed): boolean {
  if (expected.status < 300) return status >= 200 && status < 300;
  // A resource that a body names may be refused with any of them.
  if (expected.status === 400 && expected.code === undefined && status === 404) return true;
  return status === expected.status && (expected.code === undefined || expected.code === code);
}

/**
 * Whether a refusal is explained by a simultaneous step: its lock, its quota, which a deletion releases when it is done, or its
 * deletion of a resource that contains the one that the step changes or that the body names.
 */
function isTransient(model: Model, { steps }: Group, i: number, { code }: Observed): boolean {
  if (code === 'QuotaExceeded') return true;
  const concerned = (step: Step) => [...(step.on === null ? [] : [step.on]), ...namedIn(step.body)];
  if (code === 'Conflict') {
    const deleted = steps.filter((step, j) => j !== i && commandOf(step.command).method === 'DELETE');
    return concerned(steps[i]!).some((label) => deleted.some(({ on }) => on !== null && isWithin(model, label, on)));
  }
  if (code !== 'ResourceLocked') return false;
  const roots = (step: Step) => concerned(step).map((label) => rootOf(model, label));
  const own = roots(steps[i]!);
  return steps.some((other, j) => j !== i && roots(other).some((root) => own.includes(root)));
}
