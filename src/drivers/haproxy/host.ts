/**
 * The state of this host: specs, their renderings, and the settings that HAProxy runs.
 *
 * Invariant: files and memory are the same at all times, except for `unwritten`, so that HAProxy can be restarted at any
 * time. `running` differs from `rendered` only between a change of the files and the following reload.
 *
 * Failure modes: a load balancer that HAProxy cannot serve (a port in use, an unreadable certificate) is excluded from a
 * start, so that the others start, and reported in the status of the driver.
 */
import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import type { Logger } from '../../platform/log.ts';
import type { MemberRule, MemberRules } from '../../platform/member-networks.ts';
import { refuseShortage } from '../../platform/read-or-empty.ts';
import type { UdpBalancer } from '../nginx/process.ts';
import { idsIn } from '../id-files.ts';
import { addressesOf } from '../load-balancer.ts';
import { type Admission, admit } from './admission.ts';
import { type GlobalSettings, type Rendered, renderBalancer, renderGlobal, structureOf } from './configuration.ts';
import type { HaproxyFinding } from './detect.ts';
import type { Drains } from './drains.ts';
import { refuseUnbindable } from './endpoints.ts';
import { replaceText } from '../durable-files.ts';
import { type Layout, makeFolders } from './layout.ts';
import type { Probes } from './probes.ts';
import { checkConfiguration, type HaproxyProcess, NO_SERVERS_STATE } from './process.ts';
import { removeUnusedFiles, loadSpecs, type Spec, writeFiles } from './specs.ts';
import { type Capabilities, requireValid } from './validation.ts';

export interface Host {
  layout: Layout;
  log: Logger;
  finding: HaproxyFinding & { haproxy: string };
  settings: GlobalSettings;
  process: HaproxyProcess;
  drains: Drains;
  probes: Probes;
  /** Null without nginx: UDP listeners are rejected. */
  udp: UdpBalancer | null;
  /** As desired, and as on disk. */
  specs: Map<string, Spec>;
  /** The served part of each spec. */
  admitted: Map<string, Admission>;
  memberRules: MemberRules;
  rendered: Map<string, Rendered>;
  /** The settings that HAProxy runs, by load balancer. */
  running: Map<string, string>;
  /** Load balancers whose files are newer than memory: a rejected change could not be reverted. */
  unwritten: Set<string>;
  /** The reasons why load balancers with a spec are not served. */
  broken: Map<string, unknown>;
  /** Reads the counters of the worker that the reload will replace. */
  beforeReload(): Promise<void>;
  counts: { reloads: number; runtimeChanges: number };
}

export function capabilitiesOf({ finding }: Host): Capabilities {
  return { udp: finding.nginx !== null, ping: finding.ping !== null };
}

/** Starts HAProxy with the specs on disk, or adopts a running one. */
export async function restore(host: Host): Promise<void> {
  await makeFolders(host.layout);
  const specs = await loadSpecs(host.layout, host.log);
  const admitOne = admitterFor(host, specs);
  for (const spec of specs) renderSpec(host, spec, admitOne);
  await host.process.start();
  const runs = await host.process.running();
  if (runs.structure === structure(host)) {
    await writeBalancers(host, host.rendered.values());
    markRunning(host);
  } else {
    await reloadEverything(host);
  }
  await removeUnusedFiles(host.layout, usedFiles(host));
}

/**
 * Renders a spec from disk. An invalid one is logged and kept in `broken`, so that it does not prevent the others.
 * @throws without descriptors or memory
 */
export function renderSpec(host: Host, spec: Spec, admitOne: (spec: Spec) => Admission): void {
  try {
    host.specs.set(spec.id, spec);
    requireValid(spec);
    const admission = admitOne(spec);
    setAdmission(host, spec.id, admission);
    host.rendered.set(spec.id, renderBalancer(admission.served, host.layout, host.settings.maxConnections));
  } catch (err) {
    // It says nothing about the spec.
    refuseShortage(err);
    host.broken.set(spec.id, err);
    host.log.error({ loadBalancer: spec.id, err }, 'cannot render the spec of a load balancer');
  }
}

/** Decides by the current addresses of the host which members are served. `specs` are those of all load balancers. */
export function admitterFor(host: Host, specs: Iterable<Spec>): (spec: Spec) => Admission {
  const vips = new Set([...specs].flatMap(addressesOf));
  const rules = new Map<number, MemberRule>();
  return (spec) => {
    const rule = rules.get(spec.regionId) ?? host.memberRules(spec.regionId);
    rules.set(spec.regionId, rule);
    return admit(spec, rule, vips);
  };
}

/** Something else may have removed or edited the file that each check needs. */
export async function restoreGlobal(host: Host): Promise<void> {
  const { revision } = await host.process.running();
  await writeGlobal(host, revision);
}

/** Logs each omitted member once. */
export function setAdmission(host: Host, id: string, admission: Admission): void {
  const before = host.admitted.get(id)?.refused;
  host.admitted.set(id, admission);
  for (const [member, reason] of admission.refused) {
    if (!before?.has(member)) host.log.warn({ loadBalancer: id, member, reason }, 'omitted a member');
  }
}

/** The specs without omitted members. */
export function servedSpecs({ admitted }: Host): Spec[] {
  return [...admitted.values()].map(({ served }) => served);
}

/** For an adopted HAProxy with another configuration. @throws DriverError if it keeps that */
export async function reloadEverything(host: Host): Promise<void> {
  const revision = newRevision();
  await prepareStart(host, revision);
  const { refused } = await host.process.reload(revision);
  if (refused) throw refused;
  host.counts.reloads += 1;
  markRunning(host);
}

/** Writes the configuration of all load balancers that HAProxy can serve. `given`: the revision; default: that on disk. */
export async function prepareStart(host: Host, given?: string): Promise<void> {
  const revision = given ?? (await revisionOnDisk(host.layout)) ?? newRevision();
  // A cleaner of /run or /tmp may have removed the folder of the sockets.
  await makeFolders(host.layout);
  for (const [id, rendered] of host.rendered) {
    await writeFiles(host.layout, rendered.files);
    // An adopted HAProxy listens on these ports itself.
    if (!host.process.isUp()) await refuseUnbindable(rendered).catch((err: unknown) => exclude(host, id, err));
  }
  await replaceText(host.layout.stateFile, NO_SERVERS_STATE);
  await writeAll(host, revision);
  const objection = await checkConfiguration(host.finding.haproxy, [host.layout.configuration]).catch(
    (err: unknown) => err,
  );
  if (!objection) return;
  await Promise.all([...host.rendered.keys()].map((id) => checkOne(host, id)));
  await writeAll(host, revision);
}

async function checkOne(host: Host, id: string): Promise<void> {
  const { layout, finding } = host;
  const files = [layout.globalFile, layout.balancerFile(id)];
  if (host.rendered.get(id)?.text === '') return;
  await checkConfiguration(finding.haproxy, files).catch((err: unknown) => exclude(host, id, err));
}

function exclude(host: Host, id: string, err: unknown): void {
  host.rendered.delete(id);
  host.broken.set(id, err);
  host.log.error({ loadBalancer: id, err }, 'excluded a load balancer');
}

async function writeAll(host: Host, revision: string): Promise<void> {
  await writeBalancers(host, host.rendered.values());
  for (const id of await idsIn(host.layout.configuration, '.cfg', 'balancer-')) {
    if (!host.rendered.get(id)?.text) await rm(host.layout.balancerFile(id));
  }
  await writeGlobal(host, revision);
}

/** Writes or removes the file of each. HAProxy reads them at its next reload. */
export async function writeBalancers(host: Host, list: Iterable<Pick<Rendered, 'id' | 'text'>>): Promise<void> {
  for (const { id, text } of list) {
    const file = host.layout.balancerFile(id);
    if (text === '') await rm(file, { force: true });
    else await replaceText(file, text);
  }
}

/** Writes the global file. HAProxy reads it at its next reload, and then reports this revision. */
export async function writeGlobal(host: Host, revision: string): Promise<void> {
  const { settings, layout } = host;
  await replaceText(layout.globalFile, renderGlobal(settings, layout, revision, structure(host)));
}

/** Notes that HAProxy runs with what is rendered now. */
export function markRunning(host: Host): void {
  host.running = new Map([...host.rendered].map(([id, { settings }]) => [id, settings]));
}

function structure({ settings, layout, rendered }: Host): string {
  return structureOf(settings, layout, rendered.values());
}

/** Null without a configuration. */
async function revisionOnDisk({ globalFile }: Layout): Promise<string | null> {
  const text = await readFile(globalFile, 'utf8').catch(() => '');
  return /^ *description cloudyard ([\w.-]+) /m.exec(text)?.[1] ?? null;
}

/** Names one version of the configuration, and the admin socket of the worker that loads it. */
export function newRevision(): string {
  return randomBytes(5).toString('hex');
}

/** The names of the files of all load balancers: certificates and lists. */
export function usedFiles(host: Host): Set<string> {
  return new Set([...host.specs.values()].flatMap((spec) => filesOf(host, spec)));
}

/** The names of the files of a load balancer. */
export function filesOf({ rendered }: Host, { id, listeners, pools }: Spec): string[] {
  const certificates = listeners.flatMap(({ certificate, sniCertificates }) => [certificate, ...sniCertificates]);
  const ofPools = pools.flatMap((pool) => [pool.caBundle, pool.revocationList, pool.clientCertificate?.pem]);
  const names = [...certificates.map((each) => each?.pem), ...ofPools].filter((name) => name != null);
  return [...names, ...(rendered.get(id)?.files.keys() ?? [])];
}
