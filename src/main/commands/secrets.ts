import { addKey, keyIds, useKey } from '../../platform/key-file.ts';
import { command, type Command } from '../command-line.ts';
import { program } from '../program.ts';
import type { Services } from '../services.ts';
import { UsageError } from '../usage-error.ts';
import { print, withServices } from './with-services.ts';

/**
 * With one key file, a rotation adds a key and uses it at once. With a key file on each of several hosts, `--prepare` adds
 * a key that only decrypts, so that every host can have it before any host encrypts with it, and `--use` then uses it.
 */
const rotateKey = command({
  name: 'secrets rotate-key',
  summary: 'Re-encrypt all secrets with a new key',
  options: {
    prepare: { type: 'boolean', default: false, description: 'only add a key; copy the key file to all hosts next' },
    use: { type: 'string', value: 'ID', description: 'encrypt with a key that --prepare added' },
  },
  async run(settings, { prepare, use }) {
    if (prepare && use !== undefined) throw new UsageError('--prepare conflicts with --use; use only one');
    const { keyFile } = settings;
    await withServices(settings, async (services) => {
      const id = await changeKeyFile(services, keyFile, { prepare, use });
      if (prepare) {
        print(
          `${id} is in ${keyFile}; copy the file to all hosts, then run: ${program} secrets rotate-key --use ${id}`,
        );
        return;
      }
      const count = await services.reencrypt().catch((cause: Error) => {
        throw new Error(
          `${id} is the current key, but some secrets could not be re-encrypted: ${cause.message}; ` +
            `keep the old keys, and run: ${program} secrets rotate-key --use ${id}`,
          { cause },
        );
      });
      print(`${id} is the current key; ${count} re-encrypted`);
      const old = keyIds(keyFile).slice(1);
      if (old.length > 0) print(`no longer needed once every host has the file: ${old.join(', ')}`);
    });
  },
});

export const secretCommands: Command[] = [rotateKey];

/** Advisory lock that serializes the rotations of one database. */
const rotationLock = 0x636c6f75_6b;

/** Returns the id of the key that was added or is used now. */
async function changeKeyFile(
  { db, audit }: Services,
  keyFile: string,
  { prepare, use }: { prepare: boolean; use: string | undefined },
): Promise<string> {
  const { commandAction } = await import('../../audit/audit.ts');
  const action = { ...commandAction(prepare ? 'prepareKey' : 'rotateKey'), always: true };
  return audit.transaction(db, action, async (tx, act) => {
    await tx.$client.query('select pg_advisory_xact_lock($1)', [rotationLock]);
    const id = use ?? addKey(keyFile);
    const encrypts = keyIds(keyFile)[0];
    if (!prepare) useKey(keyFile, id);
    act.changes = [{ table: 'secret.keys', id, before: { encrypts }, after: { encrypts: prepare ? encrypts : id } }];
    return id;
  });
}
