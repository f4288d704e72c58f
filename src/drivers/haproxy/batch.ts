/**
 * How a change reaches HAProxy. Requests that wait together are one batch: what only members differ in goes over the
 * runtime socket, and all that takes a reload shares one. In this order, so that a crash at any instant is cured by the
 * same request again, and HAProxy can be restarted at any instant:
 *
 *   check (HAProxy itself reads the new file, ports can be bound) → spec → configuration file → reload → servers.
 *
 * How it fails: what cannot be rendered, checked or bound rejects alone and touches nothing. When HAProxy refuses the
 * reload of several, the files go back to what it runs and each is tried by itself, so that one cannot spoil the others.
 */
import { rm } from 'node:fs/promises';
import { refuseAborted } from '../command.ts';
import { DriverError } from '../driver.ts';
import type { DesiredLoadBalancer, ObservedLoadBalancer } from '../load-balancer.ts';
import { changesOf } from './changes.ts';
import { type Rendered, renderBalancer } from './configuration.ts';
import { refuseTaken, refuseUnbindable } from './endpoints.ts';
import {
  abilitiesOf,
  type Host,
  markRunning,
  newRevision,
  replaceFile,
  usedFiles,
  writeBalancers,
  writeGlobal,
} from './host.ts';
import { checkConfiguration, NO_SERVERS_STATE, saveServersState } from './process.ts';
import { command, id as checkedId } from './quote.ts';
import { refusals } from './refusals.ts';
import { dropSpec, dropUnused, type Files, saveSpec, type Spec, takeApart, writeFiles } from './specs.ts';
import { syncServers, updateUdp } from './sync.ts';

export interface Change {
  id: string;
  /** Null takes it away. */
  desired: DesiredLoadBalancer | null;
  /** Keeps the spec in quarantine. */
  aside: boolean;
  signal: AbortSignal;
}

export interface Plan {
  change: Change;
  before: { spec: Spec; rendered: Rendered | undefined } | undefined;
  after: { spec: Spec; rendered: Rendered; files: Files } | null;
  /** Why it could not be done; nothing more is done about it then. */
  failed: unknown;
  changed: string[];
  reloaded: boolean;
  /** HAProxy would not take it over, alone or with others. */
  reloadRefused: boolean;
}

/** Never rejects: each plan tells how it went. All changes are of different load balancers. */
export async function runBatch(host: Host, changes: Change[]): Promise<Plan[]> {
  const plans = changes.map((change) => planOf(host, change));
  for (const plan of plans) await attempt(plan, () => prepare(host, plan, plans));
  await perform(host, plans.filter(isGoing));
  return plans;
}

export function resultOf({ failed, changed, reloaded }: Plan): ObservedLoadBalancer {
  if (failed !== undefined) throw failed;
  return { changed, reloaded };
}

function planOf(host: Host, change: Change): Plan {
  const spec = host.specs.get(change.id);
  const before = spec && { spec, rendered: host.rendered.get(change.id) };
  return { change, before, after: null, failed: undefined, changed: [], reloaded: false, reloadRefused: false };
}

async function attempt(plan: Plan, work: () => Promise<void>): Promise<void> {
  try {
    if (isGoing(plan)) await work();
  } catch (err) {
    plan.failed = err;
  }
}

function isGoing({ failed }: Plan): boolean {
  return failed === undefined;
}

function takesReload(host: Host, { change, after }: Plan): boolean {
  return (host.running.get(change.id) ?? '') !== (after?.rendered.settings ?? '');
}

async function prepare(host: Host, plan: Plan, all: Plan[]): Promise<void> {
  const { change, before } = plan;
  refuseAborted(change.signal);
  checkedId(change.id);
  if (change.desired) {
    const why = refusals(change.desired, abilitiesOf(host));
    if (why.length > 0) throw refused(why);
    const { spec, files } = takeApart(change.desired);
    const rendered = renderBalancer(spec, host.layout);
    plan.after = { spec, rendered, files: new Map([...files, ...rendered.files]) };
  }
  plan.changed = changesOf(before?.spec, plan.after?.spec ?? null);
  if (!plan.after) return;
  refuseTaken(plan.after.rendered, planned(host, plan, all));
  await host.udp?.refuseUnbindable(plan.after.spec);
  if (takesReload(host, plan)) await refuseUnusable(host, plan.after);
}

function refused(why: string[]): DriverError {
  const text = why.join('; ');
  return new DriverError(`cannot be done: ${text}`, { customerMessage: `${text}.`, retryable: false });
}

/** What everybody else has, or will have after this batch. */
function planned(host: Host, plan: Plan, all: Plan[]): Iterable<Rendered> {
  const rest = new Map(host.rendered);
  for (const other of all) {
    if (other === plan || !isGoing(other)) continue;
    if (other.after) rest.set(other.change.id, other.after.rendered);
    else rest.delete(other.change.id);
  }
  return rest.values();
}

async function refuseUnusable(host: Host, after: NonNullable<Plan['after']>): Promise<void> {
  const { layout } = host;
  const { rendered } = after;
  const held = new Set([...host.rendered.values()].flatMap(({ endpoints }) => [...endpoints.values()].map(textOf)));
  await refuseUnbindable([...rendered.endpoints.values()].filter((each) => !held.has(textOf(each))));
  await writeFiles(layout, after.files);
  if (rendered.text === '') return;
  const candidate = layout.candidate(rendered.id);
  try {
    await replaceFile(candidate, rendered.text);
    await checkConfiguration(host.finding.haproxy ?? 'haproxy', [layout.globalFile, candidate]);
  } finally {
    await rm(candidate, { force: true });
  }
}

function textOf({ address, port }: { address: string; port: number }): string {
  return `${address} ${port}`;
}

async function perform(host: Host, plans: Plan[]): Promise<void> {
  for (const plan of plans) await attempt(plan, () => commit(host, plan));
  const going = plans.filter(isGoing);
  const structural = going.filter((plan) => takesReload(host, plan));
  const reloaded = structural.length > 0 && (await reloadFor(host, structural));
  const refusedOnes = structural.filter(({ reloadRefused }) => reloadRefused);
  if (refusedOnes.length > 0) await tryAlone(host, refusedOnes);
  const left = going.filter((plan) => isGoing(plan) && !refusedOnes.includes(plan));
  await syncAfter(host, left, reloaded);
  if (reloaded) await dropUnused(host.layout, usedFiles(host));
}

/** HAProxy goes on with what it had, and so do the files. */
async function tryAlone(host: Host, plans: Plan[]): Promise<void> {
  for (const plan of plans) await revert(host, plan);
  await writeGlobal(host, newRevision());
  if (plans.length === 1) return;
  for (const plan of plans) {
    Object.assign(plan, { failed: undefined, reloadRefused: false });
    await perform(host, [plan]);
  }
}

/** In memory, in the spec and in the files; HAProxy does not know yet. */
async function commit(host: Host, { change, after }: Plan): Promise<void> {
  const { layout } = host;
  if (after) {
    await writeFiles(layout, after.files);
    await saveSpec(layout, after.spec);
    host.specs.set(change.id, after.spec);
    host.rendered.set(change.id, after.rendered);
    await writeBalancers(host, [after.rendered]);
  } else {
    await dropSpec(layout, change.id, { aside: change.aside });
    host.specs.delete(change.id);
    host.rendered.delete(change.id);
    await rm(layout.balancerFile(change.id), { force: true });
  }
  host.broken.delete(change.id);
  host.probes.update();
}

async function revert(host: Host, { change, before }: Plan): Promise<void> {
  const { layout } = host;
  if (before) {
    await saveSpec(layout, before.spec);
    host.specs.set(change.id, before.spec);
  } else {
    await dropSpec(layout, change.id, { aside: false });
    host.specs.delete(change.id);
  }
  if (before?.rendered) host.rendered.set(change.id, before.rendered);
  else host.rendered.delete(change.id);
  await writeBalancers(host, [before?.rendered ?? { id: change.id, text: '' }]);
  host.probes.update();
}

/** Whether HAProxy runs them now; where not, every plan tells why. */
async function reloadFor(host: Host, plans: Plan[]): Promise<boolean> {
  try {
    const revision = newRevision();
    await saveServersState(host.layout, await host.process.ask(['show servers state']));
    await writeGlobal(host, revision);
    await host.beforeReload();
    const { refused: why } = await host.process.reload(revision);
    if (why) for (const plan of plans) Object.assign(plan, { failed: why, reloadRefused: true });
    if (why) return false;
    host.counts.reloads += 1;
    markRunning(host);
    for (const plan of plans) plan.reloaded = true;
    await saveServersState(host.layout, NO_SERVERS_STATE);
    await retireServers(host, plans);
    return true;
  } catch (err) {
    for (const plan of plans) plan.failed = err;
    return false;
  }
}

/** Workers that the reload replaced go on with connections that they have; what was removed drains there as well. */
async function retireServers(host: Host, plans: Plan[]): Promise<void> {
  const gone = plans.flatMap(({ before, after }) => goneServers(before?.rendered, after?.rendered));
  if (gone.length === 0) return;
  const commands = gone.map(({ backend, name }) => command('set', 'server', `${backend}/${name}`, 'state', 'maint'));
  for (const pid of await host.process.oldWorkers()) await host.process.askOld(pid, commands);
  for (const { backend, name, kept } of gone) host.drains.add(backend, name, { kept });
}

function goneServers(before: Rendered | undefined, after: Rendered | undefined) {
  const servers = (after?.pools ?? []).flatMap((pool) => pool.servers);
  const names = new Set(servers.map(({ name }) => name));
  const members = new Set(servers.map(({ member }) => member));
  return (before?.pools ?? []).flatMap(({ backend, servers: had }) =>
    had
      .filter(({ name }) => !names.has(name))
      .map(({ name, member }) => ({ backend, name, kept: members.has(member) })),
  );
}

/** After a reload all pools are compared: what HAProxy has must be what is desired. */
async function syncAfter(host: Host, plans: Plan[], reloaded: boolean): Promise<void> {
  try {
    const own = plans.flatMap(({ after }) => after?.rendered.pools ?? []);
    if (reloaded)
      await syncServers(
        host,
        [...host.rendered.values()].flatMap(({ pools }) => pools),
      );
    else if (plans.length === 1 && plans[0]) plans[0].changed.push(...(await syncServers(host, own)));
    else for (const plan of plans) plan.changed.push(...(await syncServers(host, plan.after?.rendered.pools ?? [])));
    await updateUdp(host);
  } catch (err) {
    for (const plan of plans) plan.failed = err;
  }
}
