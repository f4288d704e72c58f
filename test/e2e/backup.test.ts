/** The backup and the restore of docs/guides/backup-and-restore.md, with clients that write until the stop. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openYard, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { startTraffic, type Traffic } from '../traffic.ts';
import { serveBoth, type Served } from './balanced.ts';
import { defaultNetwork, expectHostEqualsRows, newShare, shares } from './storm.ts';

vi.setConfig({ testTimeout: 300_000 });

const parts = ['haproxy', 'nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;
const guide = readFileSync('docs/guides/backup-and-restore.md', 'utf8');

/** The command of the guide that starts so, for this data directory instead of /srv/cloudyard. */
function commandOf(beginning: string, yard: Yard): string {
  const text = guide.slice(guide.indexOf(beginning));
  const command = text.slice(0, text.indexOf('```')).replaceAll('\\\n', ' ').split('\n')[0]!;
  const [folder, name] = [dirname(yard.dataDir), basename(yard.dataDir)];
  return command
    .replace(/ +#.*$/, '')
    .replaceAll('/srv', folder)
    .replace(/(?<=[ '])cloudyard(?=[/ ]|$)/g, name)
    .replace('cloudyard-backup.tar', join(folder, 'cloudyard-backup.tar'));
}

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a backup by the guide', () => {
  let yard: Yard;
  let served: Served;
  let load: Traffic;

  afterEach(async () => {
    await load?.stop();
    served?.close();
    yard?.cleanUp();
  });

  it('contains no mount and no pid file, and restores shares, load balancers and counters', async () => {
    yard = await openYard({ CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy', CLOUDYARD_KEEP_DATA_PLANES: '1' });
    const first = await yard.start(['start']);
    served = await serveBoth(yard, 4);
    const share = newShare('another', await defaultNetwork(yard));
    load = startTraffic(served.writeFile, 1);
    await yard.ended(await yard.post(shares, share));
    expect((await first.stop()).code).toBe(0);
    await load.stop();
    expect(yard.mounts()).toEqual([]);
    // As a crash leaves them behind.
    writeFileSync(join(yard.dataDir, 'file-shares/ganesha/rpcbind.pid'), `${process.pid}\n`);
    mkdirSync(join(yard.dataDir, 'file-shares/mounts/left-behind'), { recursive: true });

    const archive = join(dirname(yard.dataDir), 'cloudyard-backup.tar');
    execFileSync('sh', ['-c', commandOf('tar -C /srv -Scf', yard)]);
    const names = execFileSync('tar', ['-tf', archive], { encoding: 'utf8' }).split('\n');
    expect(names.filter((name) => /\.pid$|\/mounts\/./.test(name))).toEqual([]);
    expect(names.filter((name) => name.endsWith('.xfs'))).toHaveLength(2);

    const later = await yard.start(['start']);
    await yard.ended(await yard.post(shares, share));
    expect((await later.stop()).code).toBe(0);
    const away = `${yard.dataDir}-away`;
    renameSync(yard.dataDir, away);
    execFileSync('sh', ['-c', commandOf('tar -C /srv -Sxpf', yard)]);
    rmSync(away, { recursive: true });

    await yard.start(['start']);
    await served.readFile();
    await served.request();
    expect((await yard.get(shares)).body.count).toBe(2);
    await expectHostEqualsRows(yard);
    expect((await yard.run(['quota', 'audit'])).code).toBe(0);
    const added = await yard.ended(await yard.post(shares, share));
    expect(added.state).toBe('FINISHED');
  });
});
