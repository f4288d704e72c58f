/** Keys in backups, encrypted for recipients by the real program age. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { requires } from '../../test/requires.ts';
import { openKeys, sealKeys } from './key-envelope.ts';

const id = '20261122T030000.000Z';
const keys = Buffer.from('2026-11 c2VjcmV0\n2025-01 b2xkZXI=\n');

describe.skipIf(!requires('age'))('keys for an age recipient', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-age-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  const newIdentity = (name: string) => {
    const file = join(folder, name);
    execFileSync('age-keygen', ['-o', file], { stdio: 'ignore' });
    const recipient = /public key: (age1\w+)/.exec(readFileSync(file, 'utf8'))![1]!;
    return { file, recipient };
  };
  const open = (sealed: Awaited<ReturnType<typeof sealKeys>>, ageIdentityFile?: string) =>
    openKeys(sealed, id, { passphrase: 'not used', ageIdentityFile });

  it('are decrypted with its identity only', async () => {
    const [own, other] = [newIdentity('own'), newIdentity('other')];
    const sealed = await sealKeys(keys, id, { ageRecipient: own.recipient });
    expect(sealed.method).toBe('age');
    const bytes = Buffer.from(sealed.data, 'base64');
    expect(bytes.toString('latin1')).toMatch(/^age-encryption\.org\/v1\n/);
    expect(bytes.includes('c2VjcmV0')).toBe(false);
    expect(await open(sealed, own.file)).toEqual(keys);
    // Also by hand, without Cloudyard.
    expect(execFileSync('age', ['--decrypt', '-i', own.file], { input: bytes })).toEqual(keys);
    await expect(open(sealed, other.file)).rejects.toThrow('age failed: no identity matched any of the recipients');
    await expect(open(sealed)).rejects.toThrow('pass --age-identity FILE');
  });

  it('that were changed are refused, and so is a recipient or an identity that does not exist', async () => {
    const { file, recipient } = newIdentity('third');
    const sealed = await sealKeys(keys, id, { ageRecipient: recipient });
    const bytes = Buffer.from(sealed.data, 'base64');
    bytes[bytes.length - 1]! ^= 1;
    const changed = { ...sealed, data: bytes.toString('base64') };
    await expect(open(changed, file)).rejects.toThrow('age failed: ');
    await expect(open(sealed, join(folder, 'absent'))).rejects.toThrow('no such file');
    await expect(sealKeys(keys, id, { ageRecipient: 'age1nobody' })).rejects.toThrow('malformed recipient');
  });

  it('are not encrypted by a program that is killed or cannot be started', async () => {
    const { recipient } = newIdentity('fourth');
    const program = (name: string, mode: number) => {
      const programs = join(folder, name);
      mkdirSync(programs);
      writeFileSync(join(programs, 'age'), '#!/bin/sh\necho half\nkill -9 $$\n', { mode });
      vi.stubEnv('PATH', programs);
    };
    try {
      program('killed', 0o755);
      await expect(sealKeys(keys, id, { ageRecipient: recipient })).rejects.toThrow('age was ended by SIGKILL');
      program('forbidden', 0o644);
      await expect(sealKeys(keys, id, { ageRecipient: recipient })).rejects.toThrow('age cannot be run (EACCES)');
      vi.stubEnv('PATH', join(folder, 'absent'));
      await expect(sealKeys(keys, id, { ageRecipient: recipient })).rejects.toThrow('apt-get install age');
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
