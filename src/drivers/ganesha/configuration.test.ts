/** The pure parts: rendered exports, parsed reload logs, detection of capabilities. */
import { describe, expect, it } from 'vitest';
import { renderExport, type ServerSettings } from './configuration.ts';
import { findGanesha, type HostFacts, withoutFolders } from './detect.ts';
import { accessNetwork, clientsOf } from './networks.ts';
import { readReload } from './reload-log.ts';
import { exportIds, type Spec } from './specs.ts';

const settings: ServerSettings = { bindAddress: '::', port: 2049, mountPort: 2050, version3: true };
const id = '0b0e2d5c-4b1a-4b7e-9a55-0d1f0f3a9b11';
const spec = (access: Spec['access']): Spec => ({
  id,
  sizeGib: 1,
  rootSquash: true,
  exportId: 7,
  device: 1024,
  access,
});

describe('networks in the syntax of Ganesha', () => {
  it.each([
    ['1.2.3.4', ['1.2.3.4']],
    ['1.2.3.4/32', ['1.2.3.4']],
    ['10.0.0.0/8', ['10.0.0.0/8']],
    ['0.0.0.0/0', ['0.0.0.0/1', '128.0.0.0/1']],
    ['::/0', ['::/1', '8000::/1']],
    ['fd00::/64', ['fd00::/64']],
    ['fd00::1/128', ['fd00::1']],
    ['fd00::6/127', ['fd00::6', 'fd00::7']],
    ['::ffff:10.0.0.0/104', ['10.0.0.0/8']],
  ])('%s is %j', (network, clients) => expect(clientsOf(accessNetwork(network))).toEqual(clients));

  it('lists up to 256 addresses individually', () => {
    expect(clientsOf(accessNetwork('fd00::ff00/120'))).toHaveLength(256);
  });

  it.each([
    '',
    'x',
    '1.2.3',
    '10.1.2.3/8',
    '1.2.3.4/33',
    '1.2.3.4/',
    '1.2.3.4/8/8',
    '1.2.3.4/+8',
    '1.2.3.4; }',
    'fe80::1%eth0',
    '*',
    '@x',
  ])('refuses %j', (text) => expect(() => accessNetwork(text)).toThrow(/is not a network/));

  it('refuses IPv6 networks that Ganesha cannot express', () => {
    expect(() => clientsOf(accessNetwork('fd00::/110'))).toThrow(/between/);
  });
});

describe('an export', () => {
  it('admits no client without rules', () => {
    const text = renderExport(spec([]), '/data/mount', settings);
    expect(text).toContain('Access_Type = NONE;');
    expect(text).not.toContain('CLIENT');
  });

  it('lists the most specific rule first, and each network once', () => {
    const text = renderExport(
      spec([
        { network: '10.0.0.0/8', mode: 'rw' },
        { network: '10.1.2.3', mode: 'rw' },
        { network: '10.1.2.3/32', mode: 'ro' },
        { network: '10.1.0.0/16', mode: 'ro' },
      ]),
      '/data/mount',
      settings,
    );
    const rules = [...text.matchAll(/Clients = (.*?); Access_Type = (R[OW]);/g)].map(([, who, how]) => `${who} ${how}`);
    expect(rules).toEqual(['10.1.2.3 RO', '10.1.0.0/16 RO', '10.0.0.0/8 RW']);
  });

  it('gets a unique id that is not reused soon', () => {
    const numbers = exportIds([spec([])]);
    expect(numbers.take(id)).toBe(7);
    expect(numbers.take('a')).toBe(8);
    numbers.release('a');
    expect(numbers.take('b')).toBe(9);
    expect(numbers.take('b')).toBe(9);
  });
});

describe('the log of a reload', () => {
  const begin =
    'x[sigmgr] sigmgr_thread :MAIN :EVENT :SIGHUP_HANDLER: Received SIGHUP.... initiating export list reload';
  const end = 'x[sigmgr] reread_exports :CONFIG :EVENT :Reread exports complete';
  const taken = (n: number, how: string) =>
    `x[sigmgr] export_commit_common :CONFIG :INFO :Export ${n} ${how} at pseudo (/shares/${n}) with path (/p) and tag ((null))`;
  const log = (...lines: string[]) => `${lines.join('\n')}\n`;

  it('is null before the reload has started and ended', () => {
    expect(readReload(log(taken(1, 'created'), end))).toBeNull();
    expect(readReload(log(begin, taken(1, 'created')))).toBeNull();
  });

  it('lists the exports in force', () => {
    const reload = readReload(log(end, begin, taken(1, 'updated'), taken(2, 'created'), end, begin));
    expect([...(reload?.inForce ?? [])]).toEqual([
      [1, { pseudo: '/shares/1' }],
      [2, { pseudo: '/shares/2' }],
    ]);
  });

  it('ignores an export with an error', () => {
    const exportError = 'x[sigmgr] client_commit :CONFIG :CRIT :No clients specified';
    const reload = readReload(
      log(begin, taken(1, 'updated'), exportError, taken(2, 'updated'), taken(3, 'updated'), end),
    );
    expect([...(reload?.inForce.keys() ?? [])]).toEqual([1, 3]);
    expect(reload).toMatchObject({ errors: [exportError], readable: true });
  });

  it('is unreadable after a syntax error', () => {
    const error = 'x[sigmgr] ganesha_yyerror :CONFIG :CRIT :Config file (/c:8) error: syntax error';
    expect(readReload(log(begin, error, taken(1, 'updated'), end))).toMatchObject({ readable: false });
  });
});

describe('the capabilities of a host', () => {
  const host = (facts: Partial<HostFacts> & { without?: string }): HostFacts => ({
    program: (name) => (name === facts.without ? null : `/usr/bin/${name}`),
    vfsPlugin: '/usr/lib/ganesha/libfsalvfs.so',
    capabilities: 0x1ff_ffff_ffffn,
    loopDevices: true,
    ...facts,
  });

  it('support shares with a size as root', () => {
    const finding = findGanesha(host({}));
    expect(finding).toMatchObject({ sizeEnforced: true, programs: { ganesha: '/usr/bin/ganesha.nfsd' } });
    expect(finding.remedy).toBeUndefined();
  });

  it.each([
    ['without Ganesha', { without: 'ganesha.nfsd' }, /not installed/, /^apt-get install nfs-ganesha /],
    ['without its plugin', { vfsPlugin: null }, /plugin/, /^apt-get install nfs-ganesha-vfs && npm start$/],
    ['without root', { capabilities: 0n }, /CAP_DAC_READ_SEARCH/, /^sudo npm start$/],
  ])('support no shares %s', (_, facts, detail, remedy) => {
    const finding = findGanesha(host(facts));
    expect(finding.programs).toBeNull();
    expect(finding.detail).toMatch(detail);
    expect(finding.remedy).toMatch(remedy);
  });

  it.each([
    ['without xfsprogs', { without: 'mkfs.xfs' }, /mkfs\.xfs/],
    ['without CAP_SYS_ADMIN', { capabilities: 0x1ff_ffff_ffffn & ~(1n << 21n) }, /cannot mount/],
    ['without loop devices', { loopDevices: false }, /cannot mount/],
  ])('support only shares without a size %s, if the operator selects the driver', (_, facts, detail) => {
    const finding = findGanesha(host(facts));
    expect(finding.programs).not.toBeNull();
    expect(finding.sizeEnforced).toBe(false);
    expect(finding.detail).toMatch(detail);
    const automatic = withoutFolders(finding);
    expect(automatic.programs).toBeNull();
    expect(automatic.detail).toContain('CLOUDYARD_FILE_SHARE_DRIVER=ganesha');
    expect(automatic.remedy).toBe(finding.remedy);
    expect(withoutFolders(findGanesha(host({})))).toEqual(findGanesha(host({})));
  });
});
