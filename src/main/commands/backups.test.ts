/** `backup` and `restore` as commands: what they refuse, and what they print. */
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { readBackupDirectory } from '../../backup/block-store.ts';
import { checkoutPlaces } from '../../platform/program-files.ts';
import { keyOpener } from '../backups.ts';
import { readSettings, type Settings } from '../settings.ts';
import { backupCommands } from './backups.ts';
import { useCommands } from './test-command.ts';

// It would stay with the process of the tests.
vi.mock('../../platform/low-priority.ts', () => ({ lowerPriority: () => {} }));

const { folder, run: runCommand } = useCommands(backupCommands);
const store = join(folder, 'backups');

const run = (args: string[], own: Record<string, string> = {}) =>
  runCommand(args, {
    CLOUDYARD_DATA_DIR: join(folder, 'api'),
    CLOUDYARD_BACKUP_DIR: store,
    ...own,
  });

it('the data of tenants is that of a worker, and a data directory without any is refused', async () => {
  const worker = join(folder, 'worker');
  mkdirSync(join(worker, 'volumes', 'images'), { recursive: true });
  writeFileSync(join(worker, 'volumes', 'images', 'one.raw'), 'data');
  await expect(run(['backup', '--with-data'])).rejects.toThrow(
    `${join(folder, 'api')} has no data of tenants; pass the data directory of the worker with --data-dir`,
  );
  await expect(run(['backup', '--data-dir', worker])).rejects.toThrow('--data-dir requires --with-data');
  const { stderr } = await run(['backup', '--with-data', '--data-dir', worker]);
  expect(stderr).toMatch(/^backup \S+ in \S+: schema .* rows, 1 files; /);
  const { stdout } = await run(['restore', '--list']);
  expect(stdout).toMatch(/^\S+\tcommand\t.*\t1\t-$/m);
});

it('a folder whose contents are too deep to be copied is named, and the status is not that of a success', async () => {
  const worker = join(folder, 'deep');
  mkdirSync(join(worker, 'file-shares/mounts/plain', ...Array<string>(510).fill('d')), { recursive: true });
  const backup = run(['backup', '--with-data', '--data-dir', worker, '--to', join(folder, 'deep-backup')]);
  await expect(backup).rejects.toThrow(
    /complete except for the contents of \S+plain\/d\/d\S+: .* more than 500 folders/,
  );
  const { stdout } = await run(['restore', '--dry-run', '--from', join(folder, 'deep-backup')]);
  expect(stdout).toMatch(/^backup \S+ is complete/);
});

it('a small backup is not of size 0', async () => {
  expect((await run(['backup', '--to', join(folder, 'other')])).stderr).toMatch(
    /; [1-9]\d* KiB written in \d+\.\d s$/m,
  );
});

it('a backup that does not exist, and a file in place of a directory, are named', async () => {
  await run(['backup']);
  const id = '20200101T000000.000Z';
  await expect(run(['restore', '--backup', id, '--dry-run'])).rejects.toThrow(`backup ${id} not found in ${store}`);
  const file = join(folder, 'file');
  writeFileSync(file, '');
  await expect(run(['backup', '--to', file])).rejects.toThrow(
    `the backup cannot be written to ${file}: it is not a directory`,
  );
});

it('a directory of backups that does not exist is named, with the option for another one', async () => {
  const absent = join(folder, 'empty', 'backups');
  await expect(run(['restore'], { CLOUDYARD_BACKUP_DIR: absent })).rejects.toThrow(
    `${absent} does not exist; pass the directory or archive of the backups with --from`,
  );
});

it('a backup without keys names the reason', async () => {
  const keyFile = join(folder, 'absent.keys');
  const passphrase = join(folder, 'passphrase');
  writeFileSync(passphrase, 'secret');
  const settings = { CLOUDYARD_KEY_FILE: keyFile, CLOUDYARD_BACKUP_PASSPHRASE_FILE: passphrase };
  expect((await run(['backup'], settings)).stderr).toContain(
    `the keys are not in the backup: ${keyFile} does not exist\n`,
  );
  expect((await run(['backup'])).stderr).toContain(
    'the keys are not in the backup: set CLOUDYARD_BACKUP_PASSPHRASE_FILE',
  );
});

it.runIf(process.getuid?.() === 0)('a passphrase that the account cannot read is named with the fix', async () => {
  const passphrase = join(folder, 'passphrase of root');
  writeFileSync(passphrase, 'x', { mode: 0o600 });
  chmodSync(folder, 0o755);
  const { backup } = readSettings({ CLOUDYARD_BACKUP_PASSPHRASE_FILE: passphrase }, checkoutPlaces(folder), false);
  process.seteuid!(65534);
  try {
    expect(() => keyOpener({ backup } as Settings, undefined)).toThrow(
      `${passphrase} cannot be read (EACCES); as root, run: chown ${process.getuid!()} '${passphrase}'`,
    );
  } finally {
    process.seteuid!(0);
  }
});

it('a damaged backup is reported, and the others are listed', async () => {
  await run(['backup']);
  const ids = await (await readBackupDirectory(store)).list();
  const damaged = '20200101T000000.000Z';
  writeFileSync(join(store, `${damaged}.json`), 'cut short');
  const { stdout, stderr } = await run(['restore', '--list']);
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split('\t')[0]),
  ).toEqual(ids);
  expect(stderr).toContain(`the manifest ${join(store, damaged)}.json is damaged or was cut short; use another backup`);
  expect(readdirSync(store)).toContain(`${damaged}.json`);
});
