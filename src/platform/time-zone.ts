/**
 * Local time of IANA zones, by the newest rules on this machine: the zone files of the system, which the packages of the
 * distribution update, or Node's own (Intl).
 *
 * Failure modes: without zone files, or if their version is unknown, the rules are those of Node. So are the rules of a
 * single zone whose file is missing or damaged.
 *
 * Units: seconds since 1970; local times count as if the zone were UTC.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DriverStatus } from './driver-status.ts';
import { intlOffsets } from './intl-offsets.ts';
import { readOrEmpty } from './read-or-empty.ts';
import { type OffsetAt, parseTzif } from './tzif.ts';

const daySeconds = 86_400;
/** A package update takes effect within this time, without a restart. */
const recheckMs = 60_000;
/**
 * Zones in memory, of 40 KB each; beyond it they are dropped. The database has fewer names, but Intl accepts each of them in
 * many spellings (`Europe/LUXEMBOURG`), and clients choose them.
 */
const maxKnown = 1000;

export interface TimeZone {
  /** The offset from UTC at an instant. */
  offsetAt: OffsetAt;
  /** The first instant with a local time; null when clocks skip that time. */
  firstInstantOf(local: number): number | null;
}

interface TimeZoneData {
  /** A release of the IANA database, such as `2026c`. */
  version: string;
  source: 'zoneinfo' | 'node';
  /** The release of the zone files; null if there are none or their version is unknown. */
  systemVersion: string | null;
}

interface TimeZonesOptions {
  /** The zone files of the system. */
  directory?: string;
  /** The release that Node contains. */
  runtimeVersion?: string;
  /** Milliseconds. */
  now?: () => number;
}

/** Areas of the IANA database; Intl knows other names, too (`PST`, `SystemV/PST8`, `+01:00`). */
const inArea =
  /^(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific|US)(?:\/[A-Z][A-Za-z0-9_+-]*){1,2}$/;
const withoutArea = new Set(
  `CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel
   Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey
   UCT UTC Universal W-SU WET Zulu`.split(/\s+/),
);

export function createTimeZones({
  directory = '/usr/share/zoneinfo',
  runtimeVersion = process.versions.tz ?? '0',
  now = () => performance.now(),
}: TimeZonesOptions = {}) {
  const known = new Map<string, TimeZone>();
  let fingerprint: string | undefined;
  let checkedAt = -Infinity;
  let current: TimeZoneData;

  /** Reads the version again after an update, and drops the zones of the old one. */
  const data = (): TimeZoneData => {
    if (now() - checkedAt < recheckMs) return current;
    checkedAt = now();
    const found = fingerprintOf(directory);
    if (found === fingerprint) return current;
    fingerprint = found;
    known.clear();
    const systemVersion = versionOf(directory);
    const isNewer = systemVersion !== null && systemVersion > runtimeVersion;
    current = {
      version: isNewer ? systemVersion : runtimeVersion,
      source: isNewer ? 'zoneinfo' : 'node',
      systemVersion,
    };
    return current;
  };

  return {
    data,

    /** The zone of an IANA name; null for an unknown name. */
    zone(name: string): TimeZone | null {
      const { source } = data();
      const cached = known.get(name);
      if (cached) return cached;
      if (!inArea.test(name) && !withoutArea.has(name)) return null;
      const offsetAt = (source === 'zoneinfo' && systemOffsets(directory, name)) || runtimeOffsets(name);
      if (!offsetAt) return null;
      const zone = zoneOf(offsetAt);
      if (known.size >= maxKnown) known.clear();
      known.set(name, zone);
      return zone;
    },
  };
}

const zones = createTimeZones();
/** The zone of an IANA name; null for an unknown name. */
export const timeZone = zones.zone;
/** The rules in force. Reads the directory again at most every `recheckMs`. */
export const timeZoneData = zones.data;

/** Workers report the rules that they use like a driver, under this kind. */
export const timeZoneKind = 'time zones';

/** For the operator: which rules apply, and where they come from. */
export function timeZoneStatus({ version, source, systemVersion }: TimeZoneData = timeZoneData()): DriverStatus {
  const node = `Node ${process.version}`;
  const other = systemVersion === null ? 'no zone files' : `/usr/share/zoneinfo has ${systemVersion}`;
  const detail =
    source === 'node'
      ? `IANA ${version}, from ${node} (${other})`
      : `IANA ${version}, from /usr/share/zoneinfo (${node} has ${process.versions.tz})`;
  return { driver: source, kind: timeZoneKind, real: true, healthy: true, detail };
}

function zoneOf(offsetAt: OffsetAt): TimeZone {
  return {
    offsetAt,
    firstInstantOf(local) {
      // A change that matters is less than a day away, so these are the offsets before and after it.
      const [early, late] = [offsetAt(local - daySeconds), offsetAt(local + daySeconds)];
      const first = local - Math.max(early, late);
      if (offsetAt(first) === Math.max(early, late)) return first;
      const second = local - Math.min(early, late);
      return offsetAt(second) === Math.min(early, late) ? second : null;
    },
  };
}

/** Null when the file is missing or damaged. `name` is a name of the lists above, so it cannot leave the directory. */
function systemOffsets(directory: string, name: string): OffsetAt | null {
  try {
    return parseTzif(readFileSync(join(directory, name)));
  } catch {
    return null;
  }
}

/** Null when Intl does not know the name. */
function runtimeOffsets(name: string): OffsetAt | null {
  try {
    return intlOffsets(name);
  } catch {
    return null;
  }
}

const sourceFile = 'tzdata.zi';

/** Changes when a package replaces the zone files. */
function fingerprintOf(directory: string): string {
  const { ino, mtimeMs, size } = statSync(join(directory, sourceFile), { throwIfNoEntry: false }) ?? {};
  return `${ino} ${mtimeMs} ${size}`;
}

/** The first line of the sources is `# version 2026c`. Null if there are none. */
function versionOf(directory: string): string | null {
  return /^# version (\d{4}[a-z]+)/.exec(readOrEmpty(join(directory, sourceFile)))?.[1] ?? null;
}
