/**
 * Attacks with forged file handles and names. The attacker may use share A; share B has no rule for the attacker.
 */
import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DesiredFileShare } from '../../src/drivers/file-share.ts';
import type { GaneshaDriver } from '../../src/drivers/ganesha/driver.ts';
import { type TestHost, testHost } from '../../src/drivers/ganesha/test-host.ts';
import { opaque, words } from '../../src/drivers/xdr.ts';
import { requires, skipReason } from '../requires.ts';
import * as wire from './nfs-wire.ts';

const needed = ['nfs-ganesha', 'xfsprogs', 'root'] as const;
const { OK } = wire;
const [ATTACKER, OWNER] = ['127.0.0.1', '127.0.0.77'];
const SECRET = 'the secret of B';
/** Bytes of a handle for the version, the flags and the export id. The length of the file's part follows. */
const EXPORT_PART = 4;
/** First byte of the file's part: a filesystem by its device, and a kernel handle with a type of one byte. */
const BY_DEVICE = 0x45;
/** The same without a kernel handle. Ganesha returns attributes of the filesystem's root for it. */
const NO_FILE = 0x25;
/** Procedures of NFSv3. */
const V3 = { CREATE: 8, MKDIR: 9, SYMLINK: 10, REMOVE: 12 };

describe.skipIf(!requires(...needed))(skipReason(...needed) ?? 'forged file handles and names', () => {
  const signal = new AbortController().signal;
  let host: TestHost;
  let driver: GaneshaDriver;
  let attacker: wire.WireClient;
  let owner: wire.WireClient;
  let a: DesiredFileShare;
  let b: DesiredFileShare;
  let rootOfA: Buffer;
  let rootOfB: Buffer;
  let secret: Buffer;

  const share = async (network: string): Promise<DesiredFileShare> => {
    const access = [{ network, mode: 'rw' as const }];
    const desired = { id: randomUUID(), sizeGib: 1, settledGib: null, rootSquash: false, access };
    await driver.apply(desired, signal);
    return desired;
  };
  const handleOf = async (who: wire.WireClient, { id }: DesiredFileShare, ...names: string[]) => {
    const path = ['shares', id, ...names].map(wire.lookup);
    const found = (await who.compound(wire.putRoot, ...path, wire.getFh)).at(-1)!;
    expect(found).toMatchObject({ name: 'GETFH', status: OK });
    return found.handle;
  };
  const last = async (who: wire.WireClient, ...operations: wire.Operation[]) =>
    (await who.compound(...operations)).at(-1)!;
  /** Combines the file of one handle with the export of another. */
  const underExportOf = (share: Buffer, file: Buffer) =>
    Buffer.concat([share.subarray(0, EXPORT_PART), file.subarray(EXPORT_PART)]);
  const attempts = [
    [wire.getattr],
    [wire.readdir],
    [wire.read],
    [wire.lookup('secret'), wire.read],
    [wire.makeDirectory('new')],
    [wire.remove('secret')],
  ];
  /** The root of A in NFSv3 and a name in it. */
  const named = (name: string) => [opaque(wire.asVersion3(rootOfA)), opaque(name)];
  /** NFSv3 calls that create a file, a directory or a symbolic link. */
  const changes = (name: string): [number, ...Buffer[]][] => {
    const attributes = words(1, 0o777, 0, 0, 0, 0, 0);
    return [
      [V3.CREATE, ...named(name), words(0), attributes],
      [V3.MKDIR, ...named(name), attributes],
      [V3.SYMLINK, ...named(name), attributes, opaque('/')],
    ];
  };
  const expectNothing = async (who: wire.WireClient, handle: Buffer, why: string) => {
    for (const attempt of attempts) {
      const { name, status } = await last(who, wire.putFh(handle), ...attempt);
      expect(status, `${why}: ${name}`).not.toBe(OK);
    }
  };

  beforeAll(async () => {
    host = await testHost();
    driver = host.driver({}, { version3: true });
    await driver.start();
    [a, b] = [await share(ATTACKER), await share(OWNER)];
    writeFileSync(host.inside(a.id, 'own'), 'of A');
    writeFileSync(host.inside(b.id, 'secret'), SECRET);
    [attacker, owner] = [await wire.wireClient(host.port, ATTACKER), await wire.wireClient(host.port, OWNER)];
    [rootOfA, rootOfB] = [await handleOf(attacker, a), await handleOf(owner, b)];
    secret = await handleOf(owner, b, 'secret');
    expect(await last(owner, wire.putFh(secret), wire.read)).toMatchObject({ status: OK, text: SECRET });
  });
  afterAll(async () => {
    attacker?.close();
    owner?.close();
    await driver.stop().finally(host.cleanUp);
  });

  it('a handle of another client is refused to a client without a rule', async () => {
    await expectNothing(attacker, rootOfB, 'the root');
    await expectNothing(attacker, secret, 'the file');
  });

  it('a file of another share is refused under the export of a share that the client may use', async () => {
    await expectNothing(attacker, underExportOf(rootOfA, rootOfB), 'the root');
    await expectNothing(attacker, underExportOf(rootOfA, secret), 'the file');
  });

  it('a file of another share is refused with any bit of its handle flipped, and the server keeps running', async () => {
    const pid = host.pid();
    for (const handle of [secret, underExportOf(rootOfA, secret), underExportOf(rootOfA, rootOfB)]) {
      for (let bit = 0; bit < handle.length * 8; bit += 1) {
        const flipped = Buffer.from(handle);
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        for (const attempt of [[wire.read], [wire.lookup('secret'), wire.read], [wire.readdir]]) {
          const { text, names } = await last(attacker, wire.putFh(flipped), ...attempt);
          expect(text, `handle ${flipped.toString('hex')}`).not.toContain(SECRET);
          expect(names, `handle ${flipped.toString('hex')}`).not.toContain('secret');
        }
      }
    }
    expect(host.pid()).toBe(pid);
  });

  it('filesystems of the host are refused under the export of a share, for any inode', async () => {
    const { dev } = statSync('/', { bigint: true });
    const major = Number((dev >> 8n) & 0xfffn);
    const minor = Number((dev & 0xffn) | ((dev >> 12n) & 0xfff00n));
    const device = Buffer.alloc(8);
    device.writeUInt32LE(major, 0);
    device.writeUInt32LE(minor, 4);
    // The root of ext4 is inode 2, of XFS 128; their generation is 0.
    for (const inode of ['010200000000000000', '8180000000000000000000000000']) {
      const file = Buffer.concat([Buffer.from([BY_DEVICE]), device, Buffer.from(inode, 'hex')]);
      const handle = Buffer.concat([rootOfA.subarray(0, EXPORT_PART), Buffer.from([file.length]), file]);
      await expectNothing(attacker, handle, handle.toString('hex'));
      expect(await last(attacker, wire.putFh(handle), wire.lookup('etc'), wire.getattr)).not.toMatchObject({
        name: 'GETATTR',
      });
    }
  });

  it('a handle of a filesystem without a file in it opens nothing', async () => {
    const filesystem = Buffer.from(rootOfB.subarray(EXPORT_PART + 1, EXPORT_PART + 10));
    filesystem[0] = NO_FILE;
    const handle = Buffer.concat([rootOfA.subarray(0, EXPORT_PART), Buffer.from([filesystem.length]), filesystem]);
    for (const attempt of attempts.slice(1)) {
      const { name, status } = await last(attacker, wire.putFh(handle), ...attempt);
      expect(status, `${name} of ${handle.toString('hex')}`).not.toBe(OK);
    }
  });

  it('a client cannot leave its share by a name with a slash or by the parent (NFSv4)', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'cloudyard-outside-'));
    try {
      writeFileSync(join(outside, 'file'), 'of the host');
      for (const name of [join(outside, 'file'), `../${b.id}/secret`, '..', '.', '../..', 'own/../..']) {
        expect((await last(attacker, wire.putFh(rootOfA), wire.lookup(name))).status, `name ${name}`).not.toBe(OK);
        expect((await last(attacker, wire.putFh(rootOfA), wire.remove(name))).status, `name ${name}`).not.toBe(OK);
        const moved = await last(attacker, wire.putFh(rootOfA), wire.saveFh, wire.rename('own', name));
        expect(moved.status, `name ${name}`).not.toBe(OK);
      }
      for (const name of [join(outside, 'new'), `../${b.id}/new`]) {
        expect((await last(attacker, wire.putFh(rootOfA), wire.makeDirectory(name))).status, `name ${name}`).not.toBe(
          OK,
        );
      }
      expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('of the host');
      expect(existsSync(join(outside, 'new'))).toBe(false);
      expect(readFileSync(host.inside(b.id, 'secret'), 'utf8')).toBe(SECRET);
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  it('the server returns symbolic links as text and never follows them', async () => {
    mkdirSync(host.inside(a.id, 'folder'));
    for (const [name, target] of Object.entries({ etc: '/etc', other: host.inside(b.id), up: '..' })) {
      symlinkSync(target, host.inside(a.id, name));
      const link = await handleOf(attacker, a, name);
      expect(await last(attacker, wire.putFh(link), wire.readlink)).toMatchObject({ status: OK, text: target });
      for (const attempt of [[wire.read], [wire.readdir], [wire.lookup('passwd')], [wire.lookup('secret')]]) {
        expect((await last(attacker, wire.putFh(link), ...attempt)).status, `name ${name}`).not.toBe(OK);
      }
    }
  });

  it('shares without a rule for the client are not listed and not reachable from a parent', async () => {
    expect((await last(attacker, wire.putRoot, wire.readdir)).names).toEqual(['shares']);
    expect((await last(attacker, wire.putRoot, wire.lookup('shares'), wire.readdir)).names).toEqual([a.id]);
    const above = [wire.putFh(rootOfA), wire.lookupParent];
    expect((await last(attacker, ...above, wire.readdir)).names).toEqual([a.id]);
    for (const way of [above, [wire.putRoot, wire.lookup('shares')]]) {
      expect((await last(attacker, ...way, wire.lookup(b.id))).status).not.toBe(OK);
    }
    const highest = await last(attacker, ...above, wire.lookupParent, wire.lookupParent, wire.readdir);
    expect(highest.names).not.toContain('etc');
  });

  it('a handle is refused as soon as the access rule is revoked', async () => {
    const file = await handleOf(attacker, a, 'own');
    expect(await last(attacker, wire.putFh(file), wire.read)).toMatchObject({ status: OK, text: 'of A' });
    await driver.apply({ ...a, access: [] }, signal);
    await expectNothing(attacker, file, 'the file');
    await expectNothing(attacker, rootOfA, 'the root');
    const again = await wire.wireClient(host.port, ATTACKER);
    await expectNothing(again, file, 'on a new connection');
    again.close();
    await driver.apply(a, signal);
  });

  it('a handle of a deleted share opens nothing, even after another share reuses its export', async () => {
    const gone = await share(ATTACKER);
    const root = await handleOf(attacker, gone);
    await driver.remove(gone.id, signal);
    const next = await share(OWNER);
    await expectNothing(attacker, root, 'the root');
    await expectNothing(attacker, underExportOf(rootOfA, root), 'the root under another export');
    await driver.remove(next.id, signal);
  });

  it('a client cannot create, read or delete files of the host by names with slashes over NFSv3', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'cloudyard-outside-'));
    try {
      writeFileSync(join(outside, 'file'), 'of the host');
      const places = [outside, '/etc', '/usr', '/configuration', '/exports', '..', '../..', `../${b.id}`];
      for (const place of [...places, host.inside(b.id), '/', host.dataDir]) {
        for (const call of changes(`${place}/new`)) {
          expect(await attacker.version3(...call), `${call[0]} in ${place}`).not.toBe(OK);
        }
      }
      for (const name of [join(outside, 'file'), `../${b.id}/secret`, host.inside(b.id, 'secret'), '/etc/passwd']) {
        expect(await attacker.version3(V3.REMOVE, ...named(name)), `name ${name}`).not.toBe(OK);
      }
      expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('of the host');
      expect(existsSync(join(outside, 'new'))).toBe(false);
      expect(existsSync('/etc/new')).toBe(false);
      expect(readFileSync(host.inside(b.id, 'secret'), 'utf8')).toBe(SECRET);
      expect(existsSync(host.inside(b.id, 'new'))).toBe(false);
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  it('a client cannot read files that it finds by names with slashes over NFSv3', async () => {
    const configuration = readdirSync(join(host.dataDir, 'file-shares/ganesha/runtime/configuration'));
    const names = ['/etc/shadow', '/etc/passwd', '/etc/mtab', '/usr/bin/env', '/bin/sh', '/proc/self/environ'];
    const places = configuration.map((name) => `/configuration/${name}`);
    for (const name of [...names, ...places, '/configuration', '/exports', '/', '/tmp', `../${b.id}/secret`]) {
      const handle = await attacker.find3(rootOfA, name);
      if (handle) expect(await attacker.read3(handle), `name ${name}`).toBeNull();
    }
    const own = await attacker.find3(rootOfA, 'own');
    expect(await attacker.read3(own!)).toBe('of A');
  });

  it('files that a client leaves in /tmp are removed at the next change and delay no other client', async () => {
    for (let i = 0; i < 100; i += 1) await attacker.version3(...changes(`/tmp/filler${i}`)[0]!);
    const next = await share(OWNER);
    await driver.remove(next.id, signal);
    expect(readdirSync(join(host.dataDir, 'file-shares/ganesha/runtime/tmp'))).toEqual([]);
  });
});
