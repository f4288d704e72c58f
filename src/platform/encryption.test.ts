/** What is encrypted comes back for its own context only; keys are rotated by a line at the top of a file. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs, {
  chmodSync,
  chownSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createKeyring, EncryptionError } from './encryption.ts';
import { addKey, keyIds, openKeyFile, useKey } from './key-file.ts';

const aKey = (id: string) => ({ id, key: randomBytes(32) });
const old = aKey('old');
const current = aKey('current');
const keyring = createKeyring([current, old]);

const plaintexts = fc.uint8Array({ maxLength: 300 });
const contexts = fc.string({ maxLength: 40 });

describe('a keyring', () => {
  it('decrypts what it encrypted', () => {
    fc.assert(
      fc.property(plaintexts, contexts, (plaintext, context) => {
        const ciphertext = keyring.encrypt(plaintext, context);
        expect(keyring.decrypt(ciphertext, context)).toEqual(Buffer.from(plaintext));
        expect(keyring.isCurrent(ciphertext)).toBe(true);
      }),
    );
  });

  it('refuses a ciphertext that was modified, truncated or extended', () => {
    fc.assert(
      fc.property(plaintexts, contexts, fc.nat(), (plaintext, context, at) => {
        const ciphertext = keyring.encrypt(plaintext, context);
        const bit = at % (ciphertext.length * 8);
        const changed = Buffer.from(ciphertext);
        changed[bit >> 3]! ^= 1 << (bit & 7);
        for (const bad of [
          changed,
          ciphertext.subarray(0, at % ciphertext.length),
          Buffer.concat([ciphertext, changed]),
        ])
          expect(() => keyring.decrypt(bad, context)).toThrow(EncryptionError);
      }),
    );
  });

  it('refuses a ciphertext of another context', () => {
    fc.assert(
      fc.property(plaintexts, contexts, contexts, (plaintext, context, other) => {
        fc.pre(context !== other);
        expect(() => keyring.decrypt(keyring.encrypt(plaintext, context), other)).toThrow(/was modified or belongs to/);
      }),
    );
  });

  it('decrypts what an older key encrypted, and reports that it is not current', () => {
    fc.assert(
      fc.property(plaintexts, contexts, (plaintext, context) => {
        const ciphertext = createKeyring([old]).encrypt(plaintext, context);
        expect(keyring.decrypt(ciphertext, context)).toEqual(Buffer.from(plaintext));
        expect(keyring.isCurrent(ciphertext)).toBe(false);
        expect(keyring.isCurrent(keyring.encrypt(plaintext, context))).toBe(true);
      }),
    );
  });

  it('encrypts the same plaintext to different bytes that do not contain it', () => {
    const plaintext = Buffer.from('a private key');
    const [one, two] = [keyring.encrypt(plaintext, 'a'), keyring.encrypt(plaintext, 'a')];
    expect(one).not.toEqual(two);
    expect(one.includes('private')).toBe(false);
  });

  it('names a missing or different key in the error, and never the plaintext', () => {
    const ciphertext = createKeyring([aKey('lost')]).encrypt(Buffer.from('hush'), 'secret:1');
    expect(() => keyring.decrypt(ciphertext, 'secret:1')).toThrow(
      'secret:1 was encrypted with key lost, which is not in the keyring',
    );
    expect(() => createKeyring([aKey('lost')]).decrypt(ciphertext, 'secret:1')).toThrow(/a different key has this id/);
    expect(() => createKeyring([]).encrypt(Buffer.from('hush'), 'secret:1')).toThrow(/no key to encrypt with/);
    expect(() => keyring.decrypt(Buffer.from('hush'), 'secret:1')).toThrow(/^secret:1 is not a ciphertext/);
  });
});

/** A folder for temporary files on another filesystem than `tmpdir()`; undefined if this machine has none. */
const otherFilesystem = ['/var/tmp', '/dev/shm'].find((folder) => {
  const found = statSync(folder, { throwIfNoEntry: false });
  return found && found.dev !== statSync(tmpdir()).dev;
});

describe('a key file', () => {
  let directory: string;
  let file: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'cloudyard-keys-'));
    file = join(directory, 'secret.keys');
  });
  afterEach(() => rmSync(directory, { recursive: true }));
  const line = ({ id, key }: { id: string; key: Buffer }) => `${id} ${key.toString('base64')}\n`;

  it('is created at the first encryption, readable by its owner only', () => {
    const first = openKeyFile(file);
    expect(readdirSync(directory)).toEqual([]);
    const ciphertext = first.encrypt(Buffer.from('hush'), 'a');
    expect(readdirSync(directory)).toEqual(['secret.keys']);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toMatch(/^key-[0-9a-f]{8} [A-Za-z0-9+/]{43}=\n$/);
    expect(openKeyFile(file).decrypt(ciphertext, 'a').toString()).toBe('hush');
  });

  it('is not created by a process that only decrypts', () => {
    const ciphertext = keyring.encrypt(Buffer.from('hush'), 'a');
    expect(() => openKeyFile(file).decrypt(ciphertext, 'a')).toThrow(`key file ${file} not found`);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('is not created again by a process that has read it', () => {
    const opened = openKeyFile(file);
    const ciphertext = opened.encrypt(Buffer.from('hush'), 'a');
    const text = readFileSync(file);
    rmSync(file);
    expect(() => opened.encrypt(Buffer.from('hush'), 'a')).toThrow(`key file ${file} not found`);
    expect(opened.findProblem()).toContain('not found');
    expect(readdirSync(directory)).toEqual([]);
    writeFileSync(file, text);
    expect(opened.decrypt(ciphertext, 'a').toString()).toBe('hush');
    expect(opened.findProblem()).toBeNull();
  });

  it('is created once by concurrent processes, and all of them use it', () => {
    const module = JSON.stringify(new URL('./key-file.ts', import.meta.url).href);
    const script = `
      import { openKeyFile } from ${module};
      const ciphertext = openKeyFile(${JSON.stringify(file)}).encrypt(Buffer.from('hush'), 'a');
      process.stdout.write(ciphertext.toString('base64'));`;
    const shell = Array.from({ length: 4 }, (_, i) => `"$NODE" --input-type=module -e "$SCRIPT" > ${i} &`).join(' ');
    const env = { ...process.env, NODE: process.execPath, SCRIPT: script };
    spawnSync('sh', ['-c', `${shell} wait`], { cwd: directory, env });
    const ring = openKeyFile(file);
    for (let i = 0; i < 4; i++) {
      const ciphertext = Buffer.from(readFileSync(join(directory, String(i)), 'utf8'), 'base64');
      expect(ring.decrypt(ciphertext, 'a').toString()).toBe('hush');
    }
    expect(readdirSync(directory).sort()).toEqual(['0', '1', '2', '3', 'secret.keys']);
  });

  it('that another process creates while this one looks for it is used', () => {
    const lookAgain = fs.lstatSync;
    const spy = vi.spyOn(fs, 'lstatSync').mockImplementationOnce(((...args: Parameters<typeof lookAgain>) => {
      writeFileSync(file, line(old));
      return lookAgain(...args);
    }) as typeof lookAgain);
    onTestFinished(() => {
      spy.mockRestore();
      syncBuiltinESMExports();
    });
    syncBuiltinESMExports();
    const ciphertext = openKeyFile(file).encrypt(Buffer.from('hush'), 'a');
    expect(spy).toHaveBeenCalledOnce();
    expect(createKeyring([old]).decrypt(ciphertext, 'a').toString()).toBe('hush');
  });

  it('may get a new first line while processes run; after re-encryption the old line may be removed', () => {
    writeFileSync(file, line(old));
    const ring = openKeyFile(file);
    const before = ring.encrypt(Buffer.from('hush'), 'a');
    writeFileSync(file, `# rotated today\n\n${line(current)}${line(old)}`);
    expect(ring.isCurrent(before)).toBe(false);
    const after = ring.encrypt(ring.decrypt(before, 'a'), 'a');
    expect(ring.isCurrent(after)).toBe(true);
    writeFileSync(file, line(current));
    expect(ring.decrypt(after, 'a').toString()).toBe('hush');
    expect(() => ring.decrypt(before, 'a')).toThrow(`key old, which is not in ${file}`);
  });

  it.runIf(process.getuid?.() === 0)('of the account of the servers in a folder of root is changed as root', () => {
    const account = 65534;
    writeFileSync(file, line(old));
    chownSync(file, account, account);
    chmodSync(directory, 0o755);
    process.seteuid!(account);
    try {
      expect(() => addKey(file)).toThrow(`the key file ${file} cannot be written (EACCES); run the command as root`);
    } finally {
      process.seteuid!(0);
    }
    addKey(file);
    expect(statSync(file).uid).toBe(account);
  });

  it('behind a link gets another key where it is, also on another filesystem', ({ skip }) => {
    if (otherFilesystem === undefined) return skip('/var/tmp and /dev/shm are on the filesystem of the tests');
    const shared = mkdtempSync(join(otherFilesystem, 'cloudyard-keys-'));
    try {
      symlinkSync(join(shared, 'secret.keys'), file);
      const problem = `the key file ${file} is a link to a file that does not exist`;
      expect(openKeyFile(file).findProblem()).toBe(problem);
      expect(() => openKeyFile(file).encrypt(Buffer.from('x'), 'a')).toThrow(problem);
      writeFileSync(file, line(old));
      const added = addKey(file);
      useKey(file, added);
      expect(keyIds(file)).toEqual([added, 'old']);
      expect(lstatSync(file).isSymbolicLink()).toBe(true);
      expect([readdirSync(directory), readdirSync(shared)]).toEqual([['secret.keys'], ['secret.keys']]);
    } finally {
      rmSync(shared, { recursive: true });
    }
  });

  it('that is broken is reported with the number of the line, without its content', () => {
    const cases: [string, string][] = [
      [`${line(old)}hush\n`, ':2 must be an id'],
      [`id ${randomBytes(31).toString('base64')}\n`, ':1 must be an id'],
      [`${line(old)}${line(old)}`, ':2: the id old is listed twice'],
      ['# nothing\n', ' has no key to encrypt with'],
    ];
    for (const [text, message] of cases) {
      writeFileSync(file, text);
      expect(() => openKeyFile(file).encrypt(Buffer.from('x'), 'a')).toThrow(`${file}${message}`);
    }
  });

  it.skipIf(process.getuid?.() !== 0)('that this account cannot use is named with the command that fixes it', () => {
    chmodSync(directory, 0o755);
    const module = JSON.stringify(new URL('./key-file.ts', import.meta.url).href);
    const problem = () => {
      const script = `
        const { openKeyFile } = await import(${module});
        process.setuid(65534);
        process.stdout.write(String(openKeyFile(${JSON.stringify(file)}).findProblem()));`;
      return spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).stdout;
    };
    expect(problem()).toContain(`cannot be created in ${directory} (EACCES)`);
    writeFileSync(file, line(old), { mode: 0o600 });
    expect(openKeyFile(file).findProblem()).toBeNull();
    expect(problem()).toBe(`the key file ${file} cannot be read (EACCES); as root, run: chown 65534 ${file}`);
    chownSync(file, 65534, 0);
    expect(problem()).toBe('null');
  });

  it('that was missing for a decryption is not created, but used once it is restored', () => {
    const ciphertext = openKeyFile(file).encrypt(Buffer.from('x'), 'a');
    const text = readFileSync(file);
    rmSync(file);
    const keyring = openKeyFile(file);
    expect(() => keyring.decrypt(ciphertext, 'a')).toThrow('not found; restore');
    expect(() => keyring.encrypt(Buffer.from('y'), 'a')).toThrow('not found; restore');
    expect(keyring.findProblem()).toContain('not found; restore');
    writeFileSync(file, text);
    expect(keyring.isCurrent(keyring.encrypt(Buffer.from('y'), 'a'))).toBe(true);
  });

  it('that cannot be created is named in the error', () => {
    const nowhere = join(directory, 'absent', 'secret.keys');
    expect(() => openKeyFile(nowhere).encrypt(Buffer.from('x'), 'a')).toThrow(`${nowhere} cannot be created (ENOENT)`);
  });
});
