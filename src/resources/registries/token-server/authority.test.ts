/** The keys of the token server: shared by all servers and encrypted with the key file. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { transaction } from '../../../platform/db.ts';
import { createKeyring, EncryptionError, type Keyring } from '../../../platform/encryption.ts';
import { checkAuthority, openAuthority, reencryptAuthority, replaceAuthority } from './authority.ts';

const cloud = useCloudyard({ driver: null });
const [old, next] = ['old', 'next'].map((id) => ({ id, key: randomBytes(32) }));
const stored = async () =>
  (await cloud.db.$client.query<{ keys: Buffer }>('select keys from registry_authority')).rows[0]!.keys;

describe('the keys of the token server', () => {
  it('are the same for servers that start together and for servers that start later', async () => {
    const keyring = createKeyring([old!]);
    const many = await Promise.all(Array.from({ length: 8 }, () => openAuthority(cloud.db, keyring)));
    const [one] = many;
    for (const each of [...many, await openAuthority(cloud.db, keyring)]) {
      expect(each.certificate).toBe(one!.certificate);
      expect(each.password('events')).toBe(one!.password('events'));
      expect(each.secretMac('a', 'b')).toEqual(one!.secretMac('a', 'b'));
    }
    expect(one!.secretMac('a', 'b')).not.toEqual(one!.secretMac('ab', ''));
    expect(one!.password('events')).not.toBe(one!.password('uploads'));
  });

  it('are unreadable without the key file, and are re-encrypted with a new key', async () => {
    const before = await openAuthority(cloud.db, createKeyring([old!]));
    await expect(openAuthority(cloud.db, createKeyring([next!]))).rejects.toThrow(EncryptionError);
    expect((await stored()).toString('latin1')).not.toContain('signing');
    await reencryptAuthority(cloud.db, createKeyring([next!, old!]));
    await reencryptAuthority(cloud.db, createKeyring([next!, old!]));
    const after = await openAuthority(cloud.db, createKeyring([next!]));
    expect(after.certificate).toBe(before.certificate);
  });

  it('are replaced when their encryption key is lost', async () => {
    await cloud.db.$client.query('delete from registry_authority');
    const [own, other] = [createKeyring([old!]), createKeyring([next!])];
    const check = (keyring: Keyring) => transaction(cloud.db, (tx) => checkAuthority(tx, keyring));
    expect(await check(other)).toEqual({ exist: false, problem: null });
    const before = await openAuthority(cloud.db, own);
    expect(await check(own)).toEqual({ exist: true, problem: null });
    expect(await check(other)).toEqual({ exist: true, problem: expect.any(EncryptionError) });
    await transaction(cloud.db, (tx) => replaceAuthority(tx, other));
    expect(await check(other)).toEqual({ exist: true, problem: null });
    expect((await openAuthority(cloud.db, other)).certificate).not.toBe(before.certificate);
  });
});
