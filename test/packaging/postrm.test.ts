/** The script that dpkg runs after a removal, with other paths and mounts of its own. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { requires, skipReason } from '../requires.ts';

const parts = ['root', 'util-linux'] as const;

/** Purges after `prepare`, a script with the data directory as $1. Returns its output, then the files that remain. */
function purge(prepare: string): string[] {
  const root = mkdtempSync(join(tmpdir(), 'cloudyard-postrm-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const data = join(root, 'var/lib/cloudyard');
  for (const folder of [data, join(root, 'etc/cloudyard')]) mkdirSync(folder, { recursive: true });
  const script = readFileSync('packaging/deb/files/cloudyard.postrm', 'utf8');
  const moved = script.replace(/(?<![\w.])\/(?=etc\/|var\/|run\/)/g, `${root}/`);
  const all = [`set -e\n${prepare}`, `sh -c "$2" postrm purge`, 'find "$0"/var/lib/cloudyard* | sort'].join('\n');
  const args = ['--mount', 'sh', '-c', all, root, data, moved];
  const output = execFileSync('unshare', args, { encoding: 'utf8' });
  return output.replaceAll(`${root}/`, '/').trim().split('\n');
}

const disk = 'mount -t tmpfs tmpfs "$1" && mkdir -p "$1/api/postgres" "$1/lost+found"';

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a purge', () => {
  it('empties a data directory that is a disk', () => {
    expect(purge(disk)).toEqual([
      'cloudyard: /var/lib/cloudyard is empty and kept, because a disk is mounted there',
      '/var/lib/cloudyard',
      '/var/lib/cloudyard/lost+found',
    ]);
  });

  it('keeps the data while a share or a disk is mounted below it', () => {
    const found = purge(`${disk} && mkdir "$1/worker-1" && mount -t tmpfs tmpfs "$1/worker-1"`);
    expect(found[0]).toBe('cloudyard: /var/lib/cloudyard is kept, because shares or disks are mounted below it');
    expect(found).toContain('/var/lib/cloudyard/api/postgres');
  });

  it('removes a data directory that is not mounted', () => {
    expect(purge('mkdir "$1/api" "$1-other"')).toEqual(['/var/lib/cloudyard-other']);
  });
});
