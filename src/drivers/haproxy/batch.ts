/**
 * Brings changes to HAProxy. Waiting changes form a batch: changes of members use the runtime socket, and all other changes
 * of the batch share one reload. The order is such that the same request repairs a crash at any time, and HAProxy can be
 * restarted at any time:
 *
 *   check (HAProxy reads the new file, ports can be bound) → spec → configuration file → reload → servers.
 *
 * Failure modes: a change that cannot be rendered, checked or bound fails alone and changes nothing. If HAProxy rejects the
 * reload of several changes, the files are reverted and each change is tried alone.
 */
import { rm } from 'node:fs/promises';
import type { DriverError } from '../driver.ts';
import { replaceText } from '../durable-files.ts';
import { rejectNew } from './admission.ts';
import type { Rendered } from './configuration.ts';
import { type Host, markRunning, newRevision, setAdmission, usedFiles, writeBalancers, writeGlobal } from './host.ts';
import { attempt, type Change, isActive, type Plan, preparePlans, takesReload } from './plans.ts';
import { NO_SERVERS_STATE } from './process.ts';
import { removeUnusedFiles, writeFiles } from './specs.ts';
import { removeSpec, saveSpec } from '../spec-files.ts';
import { syncServers, updateUdp } from './server-sync.ts';

/** Never rejects: failures are in the plans. Every change is of another load balancer. */
export async function runBatch(host: Host, changes: Change[]): Promise<Plan[]> {
  const plans = await preparePlans(host, changes);
  await perform(host, plans.filter(isActive));
  for (const plan of plans) await attempt(plan, async () => rejectOmitted(plan));
  return plans;
}

/** Everything else has been applied by then. */
function rejectOmitted({ before, after }: Plan): void {
  if (after) rejectNew(after.spec, after.admission, before?.spec);
}

async function perform(host: Host, plans: Plan[]): Promise<void> {
  for (const plan of plans) await attempt(plan, () => commit(host, plan));
  host.probes.update();
  const active = plans.filter(isActive);
  const structural = active.filter((plan) => takesReload(host, plan));
  const reloaded = structural.length > 0 && (await reloadFor(host, structural));
  const refused = structural.filter(({ reloadRefused }) => reloadRefused);
  if (refused.length > 0) await retryAlone(host, refused);
  const remaining = active.filter((plan) => isActive(plan) && !refused.includes(plan));
  await syncAfter(host, remaining, reloaded);
  if (reloaded) await removeUnusedFiles(host.layout, usedFiles(host));
}

/** HAProxy still runs its previous configuration, so the files are reverted first. */
async function retryAlone(host: Host, plans: Plan[]): Promise<void> {
  for (const plan of plans) revert(host, plan);
  host.probes.update();
  await writeReverted(host)
    .then(() => writeGlobal(host, newRevision()))
    .catch((err: unknown) => host.log.error({ err }, 'cannot revert the configuration of HAProxy yet'));
  if (plans.length === 1) return;
  for (const plan of plans) {
    Object.assign(plan, { failed: undefined, reloadRefused: false });
    await perform(host, [plan]);
  }
}

/**
 * Changes spec, files and memory, but not HAProxy. Memory is last: after a failed write (a full disk), the next reload and
 * the next start still know what HAProxy runs. A spec that is ahead of its configuration file is applied by the next start.
 */
async function commit(host: Host, { change, after }: Plan): Promise<void> {
  const { layout } = host;
  if (after) {
    await writeFiles(layout, after.files);
    await saveSpec(layout, after.spec);
    await writeBalancers(host, [after.rendered]);
    host.specs.set(change.id, after.spec);
    setAdmission(host, change.id, after.admission);
    host.rendered.set(change.id, after.rendered);
  } else {
    await removeSpec(layout, change.id, { quarantine: change.quarantine });
    host.specs.delete(change.id);
    host.admitted.delete(change.id);
    host.rendered.delete(change.id);
    await rm(layout.balancerFile(change.id), { force: true });
  }
  host.broken.delete(change.id);
}

/** Reverts memory first: it is what HAProxy runs. Files that cannot be written are written before the next reload. */
function revert(host: Host, { change, before }: Plan): void {
  if (before) host.specs.set(change.id, before.spec);
  else host.specs.delete(change.id);
  if (before?.admission) setAdmission(host, change.id, before.admission);
  else host.admitted.delete(change.id);
  if (before?.rendered) host.rendered.set(change.id, before.rendered);
  else host.rendered.delete(change.id);
  host.unwritten.add(change.id);
}

/** Writes the files of reverted changes. @throws if the disk is still full */
async function writeReverted(host: Host): Promise<void> {
  for (const id of host.unwritten) {
    const spec = host.specs.get(id);
    await writeBalancers(host, [host.rendered.get(id) ?? { id, text: '' }]);
    if (spec) await saveSpec(host.layout, spec);
    else await removeSpec(host.layout, id, { quarantine: false });
    host.unwritten.delete(id);
  }
}

/** Returns whether HAProxy runs the plans. Failures are in the plans. */
async function reloadFor(host: Host, plans: Plan[]): Promise<boolean> {
  try {
    const refused = await reload(host);
    if (refused) for (const plan of plans) Object.assign(plan, { failed: refused, reloadRefused: true });
    if (refused) return false;
    drainRemovedServers(host, plans);
    return true;
  } catch (err) {
    for (const plan of plans) plan.failed = err;
    return false;
  }
}

/** Returns the error if HAProxy keeps its previous configuration. @throws DriverError if the result is unknown */
async function reload(host: Host): Promise<DriverError | null> {
  const revision = newRevision();
  await writeReverted(host);
  // Something else may have removed or edited files, and HAProxy reads all of them.
  await writeBalancers(host, host.rendered.values());
  // Keeps failed members down over the reload; otherwise they would get traffic until their first check.
  await replaceText(host.layout.stateFile, await host.process.ask(['show servers state']));
  await writeGlobal(host, revision);
  await host.beforeReload();
  const { refused } = await host.process.reload(revision);
  if (refused) return refused;
  host.counts.reloads += 1;
  markRunning(host);
  await replaceText(host.layout.stateFile, NO_SERVERS_STATE);
  return null;
}

/** Loads the global settings again. Replaced workers do not keep connections alive. @throws DriverError */
export async function reloadAgain(host: Host): Promise<void> {
  const refused = await reload(host);
  if (refused) throw refused;
  await syncServers(host);
}

/** Replaced workers keep their connections, so removed servers drain there, too. */
function drainRemovedServers(host: Host, plans: Plan[]): void {
  const removed = plans.flatMap(({ before, after }) => removedServers(before?.rendered, after?.rendered));
  for (const { backend, name, kept } of removed) host.drains.add(backend, name, { kept });
}

function removedServers(before: Rendered | undefined, after: Rendered | undefined) {
  const servers = (after?.pools ?? []).flatMap((pool) => pool.servers);
  const names = new Set(servers.map(({ name }) => name));
  const members = new Set(servers.map(({ member }) => member));
  return (before?.pools ?? []).flatMap(({ backend, servers: old }) =>
    old
      .filter(({ name }) => !names.has(name))
      .map(({ name, member }) => ({ backend, name, kept: members.has(member) })),
  );
}

/** After a reload all pools are compared. */
async function syncAfter(host: Host, plans: Plan[], reloaded: boolean): Promise<void> {
  try {
    if (reloaded) await syncServers(host);
    else for (const { after } of plans) await syncServers(host, after?.rendered.pools ?? []);
  } catch (err) {
    for (const plan of plans) plan.failed = err;
  }
  await updateUdp(host).catch((err: unknown) => {
    const hasUdp = ({ before, after }: Plan) =>
      [before, after].some((each) => (each?.rendered?.udpPorts ?? []).length > 0);
    for (const plan of plans.filter(hasUdp)) plan.failed ??= err;
    host.log.warn({ err }, 'cannot update UDP listeners');
  });
}
