import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { requires } from '../../test/requires.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { checkAccount } from './account-checks.ts';
import { readSettings } from './settings.ts';

const nobody = 65_534;

it.runIf(requires('root', 'util-linux'))(
  'files that the account of the server cannot read are named with the fix',
  () => {
    const folder = mkdtempSync('/var/tmp/cloudyard-account-');
    onTestFinished(() => rmSync(folder, { recursive: true }));
    chmodSync(folder, 0o755);
    const [data, keys, regions, quotas] = ['data', 'secret.keys', 'the regions', 'quotas'].map((name) =>
      join(folder, name),
    );
    mkdirSync(data!);
    for (const file of [keys!, regions!, quotas!]) writeFileSync(file, '', { mode: 0o600 });
    chmodSync(quotas!, 0o644);
    const env = {
      ...{ CLOUDYARD_DATA_DIR: data!, CLOUDYARD_KEY_FILE: keys! },
      ...{ CLOUDYARD_REGIONS_FILE: regions!, CLOUDYARD_QUOTAS_FILE: quotas! },
    };
    const settings = readSettings(env, checkoutPlaces(process.cwd()), false);
    // The server is root.
    expect(checkAccount(settings)).toEqual([]);
    chownSync(data!, nobody, nobody);
    expect(checkAccount(settings)).toMatchObject([
      {
        ok: false,
        detail: `account ${nobody}, which owns ${data}, cannot read ${keys}, ${regions}`,
        remedy: `chown ${nobody} ${keys} && chmod a+r '${regions}'`,
      },
    ]);
    chownSync(keys!, nobody, nobody);
    chmodSync(regions!, 0o644);
    expect(checkAccount(settings)).toMatchObject([{ ok: true, detail: `account ${nobody} can read them` }]);
  },
);
