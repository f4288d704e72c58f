/**
 * Checks changes before anything is changed: the rules, the ports, and HAProxy's own check of the configuration. A change
 * that fails here does not affect the others.
 *
 * HAProxy checks all changes at once, and each one only if that fails: a check of one file takes 30 ms.
 */
import { rm } from 'node:fs/promises';
import { refuseAborted } from '../command.ts';
import { replaceText } from '../durable-files.ts';
import type { DesiredLoadBalancer } from '../load-balancer.ts';
import type { Admission } from './admission.ts';
import { type Rendered, renderBalancer } from './configuration.ts';
import { claimEndpoints, endpointsOf, refuseUnbindable } from './endpoints.ts';
import { admitterFor, capabilitiesOf, type Host, restoreGlobal } from './host.ts';
import { checkConfiguration } from './process.ts';
import { id as checkedId } from './quote.ts';
import { type Files, type Spec, extractFiles, writeFiles } from './specs.ts';
import { requireValid } from './validation.ts';

export interface Change {
  id: string;
  /** Null removes it. */
  desired: DesiredLoadBalancer | null;
  /** Moves the spec to the quarantine instead of deleting it. */
  quarantine: boolean;
  signal: AbortSignal;
}

export interface Plan {
  change: Change;
  before: { spec: Spec; admission: Admission | undefined; rendered: Rendered | undefined } | undefined;
  after: { spec: Spec; admission: Admission; rendered: Rendered; files: Files } | null;
  /** The error after which the change is abandoned. */
  failed: unknown;
  /** HAProxy rejected the reload with this change, and perhaps others. */
  reloadRefused: boolean;
}

/** Never rejects: failures are in the plans. Every change is of another load balancer. */
export async function preparePlans(host: Host, changes: Change[]): Promise<Plan[]> {
  const plans = changes.map((change) => planOf(host, change));
  const admitOne = admitterFor(host, [...host.specs.values(), ...changes.flatMap(({ desired }) => desired ?? [])]);
  for (const plan of plans) await attempt(plan, async () => render(host, plan, admitOne));
  claimAll(host, plans);
  const held = new Set([...host.rendered.values()].flatMap(endpointsOf));
  for (const plan of plans) await attempt(plan, () => writeCandidate(host, plan, held));
  await checkCandidates(
    host,
    plans.filter((plan) => isActive(plan) && takesReload(host, plan) && plan.after),
  );
  return plans;
}

function planOf(host: Host, change: Change): Plan {
  const spec = host.specs.get(change.id);
  const before = spec && { spec, admission: host.admitted.get(change.id), rendered: host.rendered.get(change.id) };
  return { change, before, after: null, failed: undefined, reloadRefused: false };
}

/** Runs `work` unless the plan has failed. An error fails this plan only. */
export async function attempt(plan: Plan, work: () => Promise<void>): Promise<void> {
  try {
    if (isActive(plan)) await work();
  } catch (err) {
    plan.failed = err;
  }
}

export function isActive({ failed }: Plan): boolean {
  return failed === undefined;
}

/** Whether the change needs a reload of HAProxy: its settings differ from those that HAProxy runs with. */
export function takesReload(host: Host, { change, after }: Plan): boolean {
  return (host.running.get(change.id) ?? '') !== (after?.rendered.settings ?? '');
}

function render(host: Host, plan: Plan, admitOne: (spec: Spec) => Admission): void {
  const { id, desired, signal } = plan.change;
  refuseAborted(signal);
  checkedId(id);
  if (!desired) return;
  requireValid(desired, capabilitiesOf(host));
  const { spec, files } = extractFiles(desired);
  const admission = admitOne(spec);
  const rendered = renderBalancer(admission.served, host.layout, host.settings.maxConnections);
  plan.after = { spec, admission, rendered, files: new Map([...files, ...rendered.files]) };
}

/** The first change of a batch gets the port. A failed change keeps the ports that it has. */
function claimAll(host: Host, plans: Plan[]): void {
  const changing = new Set(plans.map(({ change }) => change.id));
  const taken = new Map<string, string>();
  const others = [...host.rendered.values()].filter(({ id }) => !changing.has(id));
  for (const each of others) for (const endpoint of endpointsOf(each)) taken.set(endpoint, each.id);
  for (const plan of plans) {
    try {
      if (isActive(plan) && plan.after) claimEndpoints(taken, plan.after.rendered);
    } catch (err) {
      plan.failed = err;
    }
    if (!isActive(plan) && plan.before?.rendered) {
      for (const endpoint of endpointsOf(plan.before.rendered)) taken.set(endpoint, plan.change.id);
    }
  }
}

async function writeCandidate(host: Host, plan: Plan, held: Set<string>): Promise<void> {
  if (!plan.after) return;
  const { rendered, admission, files } = plan.after;
  await host.udp?.check(admission.served);
  if (!takesReload(host, plan)) return;
  await refuseUnbindable(rendered, held);
  await writeFiles(host.layout, files);
  await replaceText(host.layout.candidate(rendered.id), rendered.text);
}

async function checkCandidates(host: Host, plans: Plan[]): Promise<void> {
  if (plans.length === 0) return;
  const candidate = ({ change }: Plan) => host.layout.candidate(change.id);
  const check = (files: string[]) => checkConfiguration(host.finding.haproxy, [host.layout.globalFile, ...files]);
  try {
    // While HAProxy is down, the next check or its next start writes the file.
    await restoreGlobal(host).catch((err: unknown) => host.log.debug({ err }, 'cannot write the global file yet'));
    const objection = await check(plans.map(candidate)).catch((err: unknown) => err);
    if (objection && plans.length === 1) for (const plan of plans) plan.failed = objection;
    else if (objection) await Promise.all(plans.map((plan) => attempt(plan, () => check([candidate(plan)]))));
  } finally {
    for (const plan of plans) await rm(candidate(plan), { force: true });
  }
}
