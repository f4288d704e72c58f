import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { intlOffsets } from './intl-offsets.ts';
import { createTimeZones, timeZone, timeZoneData, timeZoneStatus } from './time-zone.ts';
import { parseRule, parseTzif } from './tzif.ts';

const systemDirectory = '/usr/share/zoneinfo';
const scratch: string[] = [];
afterAll(() => scratch.forEach((path) => rmSync(path, { recursive: true })));

/** Morocco: clocks go back for Ramadan (as known in 2025), or stay at +00 from September 2026 on (as known since 2026c). */
const morocco = {
  old: `Rule M 2027 only - Feb 7 3:00 -1:00 -
Rule M 2027 only - Mar 14 2:00 0 -
Zone Africa/Casablanca -0:30:20 - LMT 1913 Oct 26
 0:00 - +00 2018 Oct 28 3:00
 1:00 M +01/+00`,
  new: `Zone Africa/Casablanca -0:30:20 - LMT 1913 Oct 26
 0:00 - +00 2018 Oct 28 3:00
 1:00 - +01 2026 Sep 20 2:00
 0:00 - +00`,
};

/** Writes zone files of a release, as the package of a distribution does. */
function writeZoneFiles(directory: string, version: string, source: string): void {
  writeFileSync(join(directory, 'source'), `${source}\n`);
  execFileSync('/usr/sbin/zic', ['-d', directory, join(directory, 'source')]);
  writeFileSync(join(directory, 'tzdata.zi'), `# version ${version}\n# This is an excerpt.\n`);
}

const offsetOf = (zones: { zone: typeof timeZone }, name: string, date: string) =>
  zones.zone(name)!.offsetAt(Date.parse(date) / 1000);

describe('the newest rules on the machine', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'cloudyard-zones-'));
    scratch.push(directory);
  });
  const inSummer = '2027-06-01T12:00:00Z';

  it('are those of the zone files if these are newer than Node', () => {
    writeZoneFiles(directory, '2026f', morocco.new);
    const zones = createTimeZones({ directory, runtimeVersion: '2025b' });
    expect(zones.data()).toEqual({ version: '2026f', source: 'zoneinfo', systemVersion: '2026f' });
    expect(offsetOf(zones, 'Africa/Casablanca', inSummer)).toBe(0);
    expect(offsetOf(zones, 'Africa/Casablanca', '2026-09-20T00:59:59Z')).toBe(3600);
    expect(offsetOf(zones, 'Africa/Casablanca', '2026-09-20T01:00:00Z')).toBe(0);
  });

  it('are those of Node if the zone files are older', () => {
    writeZoneFiles(directory, '2025b', morocco.old);
    const zones = createTimeZones({ directory });
    expect(zones.data()).toEqual({ version: process.versions.tz, source: 'node', systemVersion: '2025b' });
    expect(offsetOf(zones, 'Africa/Casablanca', inSummer)).toBe(
      intlOffsets('Africa/Casablanca')(Date.parse(inSummer) / 1000),
    );
  });

  it('are those of Node if there are no zone files, or their version is unknown', () => {
    const node = { version: process.versions.tz, source: 'node', systemVersion: null };
    expect(createTimeZones({ directory: join(directory, 'missing') }).data()).toEqual(node);
    writeFileSync(join(directory, 'tzdata.zi'), 'Z Africa/Casablanca 0 - +00\n');
    expect(createTimeZones({ directory }).data()).toEqual(node);
  });

  it('are those of Node for a zone whose file is missing or damaged', () => {
    writeZoneFiles(directory, '2999a', morocco.new);
    const zones = createTimeZones({ directory });
    expect(offsetOf(zones, 'Europe/Berlin', inSummer)).toBe(7200);
    writeFileSync(join(directory, 'Turkey'), 'TZif2 and then nothing');
    expect(offsetOf(zones, 'Turkey', inSummer)).toBe(10_800);
    expect(zones.zone('Mars/Olympus')).toBeNull();
  });

  it('do not stay in memory in all spellings', () => {
    const zones = createTimeZones({ directory });
    const first = zones.zone('Europe/Berlin');
    expect(zones.zone('Europe/Berlin')).toBe(first);
    for (let i = 0; i < 1000; i++) {
      const spelling = [...'omodrivadavia']
        .map((letter, at) => (i & (1 << at) ? letter.toUpperCase() : letter))
        .join('');
      expect(zones.zone(`America/Argentina/C${spelling}`)).not.toBeNull();
    }
    expect(zones.zone('Europe/Berlin')).not.toBe(first);
  });

  it('follow an update of the zone files within a minute, without a restart', () => {
    let now = 0;
    writeZoneFiles(directory, '2998a', morocco.old);
    const zones = createTimeZones({ directory, now: () => now });
    expect(offsetOf(zones, 'Africa/Casablanca', inSummer)).toBe(3600);
    writeZoneFiles(directory, '2998ab', morocco.new);
    now = 60_000;
    expect(offsetOf(zones, 'Africa/Casablanca', inSummer)).toBe(0);
    expect(zones.data().version).toBe('2998ab');
  });
});

describe('the rules that this machine uses', () => {
  it('know that Morocco stays at +00 in 2027', () => {
    expect(timeZoneData().version >= '2026c').toBe(true);
    const zone = timeZone('Africa/Casablanca')!;
    for (let day = Date.UTC(2027, 0, 1); day < Date.UTC(2028, 0, 1); day += 86_400_000) {
      expect(zone.offsetAt(day / 1000)).toBe(0);
    }
  });

  it('are shown with their version and source', () => {
    const status = timeZoneStatus({ version: '2026f', source: 'zoneinfo', systemVersion: '2026f' });
    expect(status.detail).toBe(
      `IANA 2026f, from /usr/share/zoneinfo (Node ${process.version} has ${process.versions.tz})`,
    );
    const { detail } = timeZoneStatus({ version: '2026c', source: 'node', systemVersion: '2025b' });
    expect(detail).toBe(`IANA 2026c, from Node ${process.version} (/usr/share/zoneinfo has 2025b)`);
  });
});

/** The offsets before and after each change from 1970 to 2100, as `zdump` of the C library reads the file. */
function changesByZdump(name: string): [instant: number, offset: number][] {
  const text = execFileSync('zdump', ['-v', '-c', '1970,2100', join(systemDirectory, name)], { encoding: 'utf8' });
  return [...text.matchAll(/^\S+ +(\w.*) UT = .* gmtoff=(-?\d+)$/gm)].map(([, date, offset]) => [
    Date.parse(`${date} UTC`) / 1000,
    Number(offset),
  ]);
}

describe.runIf(existsSync(systemDirectory))('the reader of zone files', () => {
  it.each([
    ...['Europe/Berlin', 'Europe/Dublin', 'America/New_York', 'America/Godthab', 'America/Sao_Paulo', 'Asia/Gaza'],
    ...['Africa/Casablanca', 'Australia/Lord_Howe', 'Antarctica/Troll', 'Pacific/Apia', 'Asia/Kolkata', 'Asia/Tehran'],
    ...['America/Santiago', 'Pacific/Easter', 'Africa/Monrovia', 'Etc/GMT+5', 'UTC', 'EST5EDT', 'Asia/Jerusalem'],
  ])('agrees with zdump about every change of %s until 2100', (name) => {
    const offsetAt = parseTzif(readFileSync(join(systemDirectory, name)));
    const changes = changesByZdump(name);
    expect(changes.map(([instant]) => [instant, offsetAt(instant)])).toEqual(changes);
  });

  it('follows rules with days of the year, odd hours and a summer that spans the new year', () => {
    const at = (rule: string, date: string) => parseRule(rule)(Date.parse(date) / 1000) / 3600;
    expect(at('<-03>3', '2500-01-01T00:00:00Z')).toBe(-3);
    expect(at('XXX0YYY,J60/0,J300/0', '2028-03-01T00:00:00Z')).toBe(1);
    expect(at('XXX0YYY,J60/0,J300/0', '2028-02-29T23:59:59Z')).toBe(0);
    expect(at('XXX0YYY,59/0,300/0', '2028-02-29T00:00:00Z')).toBe(1);
    expect(at('<-02>2<-01>,M3.5.0/-1,M10.5.0/0', '2027-03-28T00:59:59Z')).toBe(-2);
    expect(at('<-02>2<-01>,M3.5.0/-1,M10.5.0/0', '2027-03-28T01:00:00Z')).toBe(-1);
    expect(at('EST5EDT4,0/0,J365/25', '2027-12-31T23:00:00Z')).toBe(-4);
    expect(at('<+1030>-10:30<+11>-11,M10.1.0,M4.1.0', '2027-12-31T00:00:00Z')).toBe(11);
    expect(() => parseRule('EST5EDT')).toThrow('unknown rule');
  });
});
