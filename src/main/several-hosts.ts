/** Which region of several hosts a process works for, and what its settings must have. */
import { existsSync } from 'node:fs';
import { SettingsError } from '../platform/setting-reader.ts';
import { hostNamePattern } from '../platform/settings.ts';
import { type HostedRegion, hostedRegion } from '../resources/regions/host-configuration.ts';
import type { Configuration } from './configuration.ts';
import type { Settings } from './settings.ts';

/** The region of several hosts that this process works for; null: its regions have one host. */
export function hostedRegionOf({
  configuration,
  regionIds,
}: {
  configuration: Configuration;
  regionIds: number[];
}): HostedRegion | null {
  const own = configuration.regions.filter(({ id }) => regionIds.includes(id));
  return own.map(hostedRegion).find((region) => region !== null) ?? null;
}

/** @throws if a worker has more than one region and one of them has several hosts */
export function refuseSharedWorker(regionIds: number[], configuration: Configuration): void {
  const region = hostedRegionOf({ configuration, regionIds });
  if (!region || regionIds.length === 1) return;
  throw new Error(
    `region ${region.regionId} has several hosts: run "cloudyard serve", "cloudyard worker --region ${region.regionId}" and, on ` +
      `each host, "cloudyard host --region ${region.regionId}"`,
  );
}

/** @throws SettingsError that names each setting without which an agent cannot run; Error if only the key file is missing */
export function requireAgentSettings({ databaseUrl, keyFile, agent }: Settings): void {
  const errors: string[] = [];
  if (databaseUrl === undefined) errors.push('an agent needs the database of its region; set DATABASE_URL');
  if (!hostNamePattern.test(agent.name)) {
    errors.push(
      `an agent needs a name of letters, digits, dots and hyphens, not ${agent.name}; set CLOUDYARD_HOST_NAME`,
    );
  }
  if (agent.address === undefined) {
    errors.push('an agent needs an address at which the other hosts reach it; set CLOUDYARD_HOST_ADDRESS');
  }
  const isFinal = errors.length > 0;
  // The file may be copied while systemd repeats the start.
  if (!existsSync(keyFile)) {
    errors.push(`the key file ${keyFile} does not exist; copy it from another host, or set CLOUDYARD_KEY_FILE`);
  }
  if (errors.length > 0) throw new (isFinal ? SettingsError : Error)(errors.join('\n'));
}
