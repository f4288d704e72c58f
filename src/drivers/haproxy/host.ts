/**
 * What this host has: specs, what is rendered from them, what HAProxy runs. Files are the same at all times as what is
 * in memory here, so that HAProxy may be started again at any instant; `running` says which of it HAProxy has taken
 * over, and differs from `rendered` only between a change of the files and the reload after it.
 *
 * One load balancer that HAProxy cannot take (a port that something else has by now, a certificate that has become
 * unreadable) must not keep the others from coming back: it is left out of a start, and told in the driver's status.
 */
import { randomBytes } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { MemberRule, MemberRules } from '../../platform/member-networks.ts';
import type { UdpBalancer } from '../nginx/server.ts';
import { limited } from '../turns.ts';
import { type Admission, admit } from './admission.ts';
import { type GlobalSettings, type Rendered, renderBalancer, renderGlobal, structureOf } from './configuration.ts';
import type { HaproxyFinding } from './detect.ts';
import type { Drains } from './drains.ts';
import { refuseUnbindable } from './endpoints.ts';
import { idsIn, type Layout, makeFolders } from './layout.ts';
import type { Probes } from './probes.ts';
import { checkConfiguration, type HaproxyProcess, NO_SERVERS_STATE, saveServersState } from './process.ts';
import { dropUnused, loadSpecs, type Spec, writeFiles } from './specs.ts';
import { type Capabilities, requireValid } from './validation.ts';

export interface Host {
  layout: Layout;
  log: Logger;
  finding: HaproxyFinding;
  settings: GlobalSettings;
  process: HaproxyProcess;
  drains: Drains;
  probes: Probes;
  /** Null where nginx is missing: then nothing with UDP is taken. */
  udp: UdpBalancer | null;
  /** As they were asked for, and as they are on disk. */
  specs: Map<string, Spec>;
  /** What of them is served. */
  admitted: Map<string, Admission>;
  memberRules: MemberRules;
  rendered: Map<string, Rendered>;
  /** The settings of what HAProxy runs, by load balancer. */
  running: Map<string, string>;
  /** Why a load balancer that has a spec does not run. */
  broken: Map<string, string>;
  /** Reads what the worker that goes has counted. */
  beforeReload(): Promise<void>;
  counts: { reloads: number; runtimeChanges: number };
}

const CHECKED_AT_A_TIME = 2;

export function capabilitiesOf({ finding }: Host): Capabilities {
  return { udp: finding.nginx !== null, ping: finding.ping !== null };
}

/** From the specs on disk to a HAProxy that runs them, or an adopted one that did all along. */
export async function bringBack(host: Host): Promise<void> {
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
  await dropUnused(host.layout, usedFiles(host));
}

function renderSpec(host: Host, spec: Spec, admitOne: (spec: Spec) => Admission): void {
  try {
    host.specs.set(spec.id, spec);
    requireValid(spec);
    const admission = admitOne(spec);
    setAdmission(host, spec.id, admission);
    host.rendered.set(spec.id, renderBalancer(admission.served, host.layout, host.settings.maxConnections));
  } catch (err) {
    host.broken.set(spec.id, (err as Error).message);
    host.log.error({ loadBalancer: spec.id, err }, 'load balancer spec cannot be rendered');
  }
}

/** Decides which members are served, as of now, on a host that has load balancers with these specs. */
export function admitterFor(host: Host, specs: Iterable<Spec>): (spec: Spec) => Admission {
  const vips = new Set([...specs].map(({ address }) => address));
  const rules = new Map<number, MemberRule>();
  return (spec) => {
    const rule = rules.get(spec.regionId) ?? host.memberRules(spec.regionId);
    rules.set(spec.regionId, rule);
    return admit(spec, rule, vips);
  };
}

export function setAdmission(host: Host, id: string, admission: Admission): void {
  const before = host.admitted.get(id)?.refused;
  host.admitted.set(id, admission);
  for (const [member, why] of admission.refused) {
    if (!before?.has(member)) host.log.warn({ loadBalancer: id, member, why }, 'member is left out');
  }
}

/** What is served, of all load balancers that can be. */
export function servedSpecs({ admitted }: Host): Spec[] {
  return [...admitted.values()].map(({ served }) => served);
}

/** Of an adopted HAProxy that runs something else. */
async function reloadEverything(host: Host): Promise<void> {
  const revision = newRevision();
  await prepareStart(host, revision);
  const { refused } = await host.process.reload(revision);
  if (refused) throw refused;
  host.counts.reloads += 1;
  markRunning(host);
}

/** Writes all that can run, under a new revision, and leaves out what cannot. */
export async function prepareStart(host: Host, revision = newRevision()): Promise<void> {
  // Who tidies /run or /tmp may have taken the folder of the sockets.
  await makeFolders(host.layout);
  for (const [id, rendered] of host.rendered) {
    await writeFiles(host.layout, rendered.files);
    // An adopted HAProxy that runs something else holds its ports itself.
    if (!host.process.isUp()) await refuseUnbindable(rendered).catch((err: unknown) => leaveOut(host, id, err));
  }
  await saveServersState(host.layout, NO_SERVERS_STATE);
  await writeAll(host, revision);
  const whole = await checkConfiguration(host.finding.haproxy ?? 'haproxy', [host.layout.configuration]).catch(
    (err: unknown) => err,
  );
  if (!whole) return;
  const turn = limited(CHECKED_AT_A_TIME);
  await Promise.all([...host.rendered.keys()].map((id) => turn(() => checkOne(host, id))));
  await writeAll(host, revision);
}

async function checkOne(host: Host, id: string): Promise<void> {
  const { layout, finding } = host;
  const files = [layout.globalFile, layout.balancerFile(id)];
  if (host.rendered.get(id)?.text === '') return;
  await checkConfiguration(finding.haproxy ?? 'haproxy', files).catch((err: unknown) => leaveOut(host, id, err));
}

function leaveOut(host: Host, id: string, err: unknown): void {
  host.rendered.delete(id);
  host.broken.set(id, (err as Error).message);
  host.log.error({ loadBalancer: id, err }, 'load balancer is left out');
}

async function writeAll(host: Host, revision: string): Promise<void> {
  await writeBalancers(host, host.rendered.values());
  for (const id of await idsIn(host.layout.configuration, '.cfg', 'balancer-')) {
    if (!host.rendered.get(id)?.text) await rm(host.layout.balancerFile(id));
  }
  await writeGlobal(host, revision);
}

export async function writeBalancers(host: Host, list: Iterable<Pick<Rendered, 'id' | 'text'>>): Promise<void> {
  for (const { id, text } of list) {
    const file = host.layout.balancerFile(id);
    if (text === '') await rm(file, { force: true });
    else await replaceFile(file, text);
  }
}

export async function writeGlobal(host: Host, revision: string): Promise<void> {
  const { settings, layout, rendered } = host;
  const text = renderGlobal(settings, layout, revision, structureOf(settings, layout, rendered.values()));
  await replaceFile(layout.globalFile, text);
}

/** Not synced: after a crash of the host it is written anew from the specs. */
export async function replaceFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.unfinished`, text, { mode: 0o600 });
  await rename(`${file}.unfinished`, file);
}

export function markRunning(host: Host): void {
  host.running = new Map([...host.rendered].map(([id, { settings }]) => [id, settings]));
}

export function structure({ settings, layout, rendered }: Host): string {
  return structureOf(settings, layout, rendered.values());
}

export function newRevision(): string {
  return randomBytes(5).toString('hex');
}

export function usedFiles(host: Host): Set<string> {
  const used = new Set<string>();
  for (const spec of host.specs.values()) {
    for (const { certificate, sniCertificates } of spec.listeners) {
      for (const each of [certificate, ...sniCertificates]) if (each) used.add(each.pem);
    }
    for (const pool of spec.pools) {
      for (const name of [pool.caBundle, pool.revocationList, pool.clientCertificate?.pem]) if (name) used.add(name);
    }
  }
  for (const { files } of host.rendered.values()) for (const name of files.keys()) used.add(name);
  return used;
}
