import { addKey, keyIds, openKeyFile, useKey } from '../../platform/key-file.ts';
import { command, type Command } from '../command-line.ts';
import { program } from '../program.ts';
import type { Services } from '../services.ts';
import { UsageError } from '../usage-error.ts';
import { print, withServices } from './with-services.ts';

/**
 * With one key file, a rotation adds a key and uses it at once. With a key file on each of several hosts, `--prepare` adds
 * a key that only decrypts, so that every host can have it before any host encrypts with it, and `--use` then uses it.
 *
 * Invariant: only `--lost` changes a key file that does not decrypt the keys of registries, as on a host without the file.
 */
const rotateKey = command({
  name: 'secrets rotate-key',
  summary: 'Re-encrypt all secrets with a new key',
  options: {
    prepare: { type: 'boolean', default: false, description: 'only add a key; copy the key file to all hosts next' },
    use: { type: 'string', value: 'ID', description: 'encrypt with a key that --prepare added' },
    lost: { type: 'boolean', default: false, description: 'start again without a lost key file and what it encrypted' },
  },
  async run(settings, { prepare, use, lost }) {
    if ([prepare, use !== undefined, lost].filter(Boolean).length > 1) {
      throw new UsageError('--prepare, --use and --lost conflict; use only one');
    }
    const { keyFile } = settings;
    await withServices(settings, async (services) => {
      const id = await changeKeyFile(services, keyFile, { prepare, use, lost });
      if (prepare) {
        print(
          `${id} is in ${keyFile}; copy the file to all hosts, then run: ${program} secrets rotate-key --use ${id}`,
        );
        return;
      }
      if (lost) {
        print(`${id} is the current key, and registries have new keys; continue with docs/guides/encryption-keys.md`);
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
  { prepare, use, lost }: { prepare: boolean; use: string | undefined; lost: boolean },
): Promise<string> {
  const { commandAction } = await import('../../audit/audit.ts');
  const { checkAuthority, replaceAuthority } = await import('../../resources/registries/token-server/authority.ts');
  const action = { ...commandAction(prepare ? 'prepareKey' : 'rotateKey'), always: true };
  return audit.transaction(db, action, async (tx, act) => {
    await tx.$client.query('select pg_advisory_xact_lock($1)', [rotationLock]);
    const { exist, problem } = await checkAuthority(tx, openKeyFile(keyFile));
    if (problem && !lost) throw problem;
    if (lost && !exist) {
      throw new Error(
        '--lost has nothing to replace: no server has created the keys of registries yet; start a server',
      );
    }
    if (lost && !problem) throw new Error(`no key is lost: ${keyFile} decrypts the keys of registries`);
    const id = use ?? addKey(keyFile);
    const encrypts = keyIds(keyFile)[0];
    if (!prepare) useKey(keyFile, id);
    if (lost) await replaceAuthority(tx, openKeyFile(keyFile));
    act.changes = [{ table: 'secret.keys', id, before: { encrypts }, after: { encrypts: prepare ? encrypts : id } }];
    return id;
  });
}
