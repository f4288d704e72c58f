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
import type { ObservedLoadBalancer } from '../load-balancer.ts';
import { rejectNew } from './admission.ts';
import type { Rendered } from './configuration.ts';
import { type Host, markRunning, newRevision, setAdmission, usedFiles, writeBalancers, writeGlobal } from './host.ts';
import { attempt, type Change, isGoing, type Plan, preparePlans, takesReload } from './prepare.ts';
import { NO_SERVERS_STATE, saveServersState } from './process.ts';
import { dropSpec, dropUnused, saveSpec, writeFiles } from './specs.ts';
import { allPools, syncServers, updateUdp } from './sync.ts';

/** Never rejects: each plan tells how it went. All changes are of different load balancers. */
export async function runBatch(host: Host, changes: Change[]): Promise<Plan[]> {
  const plans = await preparePlans(host, changes);
  await perform(host, plans.filter(isGoing));
  for (const plan of plans) await attempt(plan, async () => rejectLeftOut(plan));
  return plans;
}

/** All else is in place by now. */
function rejectLeftOut({ before, after }: Plan): void {
  if (after) rejectNew(after.spec, after.admission, before?.spec);
}

export function resultOf({ failed, changed, reloaded }: Plan): ObservedLoadBalancer {
  if (failed !== undefined) throw failed;
  return { changed, reloaded };
}

async function perform(host: Host, plans: Plan[]): Promise<void> {
  for (const plan of plans) await attempt(plan, () => commit(host, plan));
  host.probes.update();
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
  host.probes.update();
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
    setAdmission(host, change.id, after.admission);
    host.rendered.set(change.id, after.rendered);
    await writeBalancers(host, [after.rendered]);
  } else {
    await dropSpec(layout, change.id, { aside: change.aside });
    host.specs.delete(change.id);
    host.admitted.delete(change.id);
    host.rendered.delete(change.id);
    await rm(layout.balancerFile(change.id), { force: true });
  }
  host.broken.delete(change.id);
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
  if (before?.admission) setAdmission(host, change.id, before.admission);
  else host.admitted.delete(change.id);
  if (before?.rendered) host.rendered.set(change.id, before.rendered);
  else host.rendered.delete(change.id);
  await writeBalancers(host, [before?.rendered ?? { id: change.id, text: '' }]);
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
    retireServers(host, plans);
    return true;
  } catch (err) {
    for (const plan of plans) plan.failed = err;
    return false;
  }
}

/** Workers that the reload replaced go on with connections that they have; what was removed drains there as well. */
function retireServers(host: Host, plans: Plan[]): void {
  const gone = plans.flatMap(({ before, after }) => goneServers(before?.rendered, after?.rendered));
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
    if (reloaded) await syncServers(host, allPools(host));
    else for (const plan of plans) plan.changed.push(...(await syncServers(host, plan.after?.rendered.pools ?? [])));
  } catch (err) {
    for (const plan of plans) plan.failed = err;
  }
  await updateUdp(host).catch((err: unknown) => {
    const hasUdp = ({ before, after }: Plan) =>
      [before, after].some((each) => (each?.rendered?.udpPorts ?? []).length > 0);
    for (const plan of plans.filter(hasUdp)) plan.failed ??= err;
    host.log.warn({ err }, 'UDP listeners are not as desired');
  });
}
