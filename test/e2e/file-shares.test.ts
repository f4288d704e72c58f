/** The life cycle of file shares on real NFS-Ganesha, over HTTP and with an NFS client. Tests run in order. */
import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { nfs, nfsUrl } from '../nfs-client.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { defaultNetwork, expectConsistent, expectHostEqualsRows, newShare, shares } from './storm.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const parts = ['nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;
const runs = requires(...parts);
const MIB = 1024 ** 2;

describe.skipIf(!runs)(skipReason(...parts) ?? 'file shares over HTTP and NFS', () => {
  let yard: Yard;
  let server: Running;
  let networkId: string;
  let file: string;

  beforeAll(async () => {
    yard = await openYard();
    server = await yard.start(['start']);
    networkId = await defaultNetwork(yard);
    file = join(yard.folder, 'file');
    writeFileSync(file, randomBytes(32 * MIB));
  });
  afterAll(() => yard?.cleanUp());

  const share = async (id: string) => (await yard.get(`${shares}/${id}`)).body;
  const created = async (name: string, changes: object = {}) => {
    const task = await yard.ended(await yard.post(shares, newShare(name, networkId, changes)));
    expect(task).toMatchObject({ state: 'FINISHED', task_type: 'create_sfs', error: null });
    return share(task.created_resources.file_shares[0]);
  };
  const url = (of: { connection_point: string }, path = '', version: 3 | 4 = 3) =>
    nfsUrl(yard, of.connection_point, path, version);
  const list = (of: { connection_point: string }, version?: 3 | 4) => nfs('nfs-ls', url(of, '', version));
  const upload = (of: { connection_point: string }, name: string) => nfs('nfs-cp', file, url(of, `/${name}`));
  const download = async (of: { connection_point: string }, name: string) => {
    // nfs-cp overwrites nothing.
    const copy = join(yard.folder, randomUUID());
    await nfs('nfs-cp', url(of, `/${name}`), copy);
    return readFileSync(copy);
  };
  const changed = async (id: string, body: object) =>
    yard.ended(await yard.patch(`${shares.replace('v1', 'v3')}/${id}`, body));
  const rules = async (id: string) => (await yard.get(`${shares}/${id}/access_rule`)).body.results;
  const inside = (id: string, path: string) => join(yard.dataDir, 'file-shares/mounts', id, path);

  it('reports the driver of file shares as real', async () => {
    expect(server.stdout()).toMatch(/file shares +ganesha +real +NFS shares served by NFS-Ganesha/);
    expect((await yard.get('/healthz/drivers')).body.drivers).toMatchObject([
      { driver: 'ganesha', real: true, healthy: true },
      { driver: 'simulated', real: false },
      { driver: 'simulated', real: false },
      { driver: 'simulated', real: false },
      { driver: 'simulated', real: false, region_ids: [] },
      { driver: 'webhook', real: true, healthy: true, region_ids: [] },
    ]);
  });

  it('creates a share that stores and returns a file', async () => {
    const made = await created('first');
    expect(made).toMatchObject({ status: 'available', size: 1, task_id: null });
    expect(made.connection_point).toBe(`127.0.0.1:/shares/${made.id}`);
    await upload(made, 'file');
    expect(await list(made)).toMatch(new RegExp(`${32 * MIB} file`));
    expect(await list(made, 4)).toContain('file');
    expect((await download(made, 'file')).equals(readFileSync(file))).toBe(true);
    writeFileSync(inside(made.id, 'note'), 'hello');
    expect(await nfs('nfs-cat', url(made, '/note', 4))).toBe('hello');
  });

  it('refuses writes under a read-only rule', async () => {
    const made = await created('read-only', { access: [{ ip_address: '127.0.0.0/8', access_mode: 'ro' }] });
    expect(await list(made)).toBe('');
    await expect(upload(made, 'file')).rejects.toThrow(/ROFS/);
    expect(await list(made)).toBe('');
  });

  it('refuses a mount without a rule, allows it with a new rule, and refuses it when the rule is deleted', async () => {
    const made = await created('ruled', { access: [] });
    await expect(list(made)).rejects.toThrow(/ACCES|NOENT/);
    await expect(list(made, 4)).rejects.toThrow(/ACCES|NOENT/);

    const rule = { ip_address: '127.0.0.1', access_mode: 'rw' };
    const added = (await yard.post(`${shares}/${made.id}/access_rule`, rule)).body;
    expect(added).toMatchObject({ access_to: '127.0.0.1', access_level: 'rw' });
    await until(async () => (await rules(made.id))[0].state === 'active', 20, 'the rule active');
    await upload(made, 'file');

    expect((await yard.delete(`${shares}/${made.id}/access_rule/${added.id}`)).status).toBe(204);
    await until(async () => (await rules(made.id)).length === 0, 20, 'the rule gone');
    await expect(list(made)).rejects.toThrow(/ACCES|NOENT/);
    await expect(list(made, 4)).rejects.toThrow(/ACCES|NOENT/);
  });

  it('refuses writes past its size and accepts them after an extension in use', async () => {
    const made = await created('growing');
    await upload(made, 'kept');
    execFileSync('fallocate', ['-l', '880M', inside(made.id, 'filler')]);
    await expect(upload(made, 'second')).rejects.toThrow(/NOSPC|Failed to write/);

    const answer = await yard.post(`${shares}/${made.id}/extend`, { size: 2 });
    expect(await share(made.id)).toMatchObject({ status: expect.stringMatching(/^(extending|available)$/) });
    expect(await yard.ended(answer)).toMatchObject({ state: 'FINISHED', task_type: 'extend_sfs' });
    expect(await share(made.id)).toMatchObject({ status: 'available', size: 2 });
    await upload(made, 'third');
    for (const name of ['kept', 'third']) {
      expect((await download(made, name)).equals(readFileSync(file))).toBe(true);
    }
  });

  it('squashes root only while root_squash is set', async () => {
    const made = await created('squashing');
    expect(made.share_settings).toEqual({ type_name: 'standard' });
    await upload(made, 'by-root');
    for (const [root_squash, name] of [
      [true, 'by-nobody'],
      [false, 'by-root-again'],
    ] as const) {
      expect(await changed(made.id, { share_settings: { root_squash } })).toMatchObject({ state: 'FINISHED' });
      const { status, share_settings } = await share(made.id);
      expect([status, share_settings.root_squash ?? false]).toEqual(['available', root_squash]);
      await upload(made, name);
    }
    const owners = (await list(made))
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
    const ownerOf = (name: string) => owners.find((fields) => fields.at(-1) === name)!.slice(2, 4);
    expect(['by-root', 'by-nobody', 'by-root-again'].map(ownerOf)).toEqual([
      ['0', '0'],
      ['65534', '65534'],
      ['0', '0'],
    ]);
  });

  it('sorts, merges and removes tags', async () => {
    const made = await created('tagged', { tags: { zone: 'b', area: 'a' } });
    const tags = async () =>
      (await share(made.id)).tags.map(({ key, value }: { key: string; value: string }) => [key, value]);
    expect(await tags()).toEqual([
      ['area', 'a'],
      ['zone', 'b'],
    ]);
    await changed(made.id, { tags: { zone: null, kind: 'c' } });
    expect(await tags()).toEqual([
      ['area', 'a'],
      ['kind', 'c'],
    ]);
    expect((await yard.post(`${shares}/${made.id}/metadata`, { area: 'd' })).status).toBe(204);
    expect(await tags()).toEqual([
      ['area', 'd'],
      ['kind', 'c'],
    ]);
    await changed(made.id, { tags: null });
    expect(await tags()).toEqual([]);
  });

  it('restores every export with its data after a restart', async () => {
    const before = await yard.get(shares);
    const listings = await Promise.all(before.body.results.map((each: never) => list(each).catch(String)));
    expect(await server.stop()).toMatchObject({ code: 0 });
    expect([yard.pids(), yard.mounts()]).toEqual([{ postgres: null, ganesha: null, rpcbind: null, haproxy: null }, []]);
    // Freed by the kernel when the last mount namespace with it ends.
    await expect.poll(() => yard.loopDevices()).toEqual([]);
    server = await yard.start(['start']);
    expect((await yard.get(shares)).body).toEqual(before.body);
    expect(await Promise.all(before.body.results.map((each: never) => list(each).catch(String)))).toEqual(listings);
    await expectHostEqualsRows(yard);
  });

  it('restores every export with its data after all processes died and nothing is mounted, as after a power failure', async () => {
    const [first] = (await yard.get(shares)).body.results;
    const { postgres, ganesha } = yard.pids();
    await server.kill();
    for (const pid of [postgres, ganesha]) process.kill(pid!, 'SIGKILL');
    for (const path of yard.mounts()) execFileSync('umount', ['-l', path]);
    server = await yard.start(['start']);
    expect((await download(first, 'file')).equals(readFileSync(file))).toBe(true);
    await upload(first, 'afterwards');
    await expectHostEqualsRows(yard);
  });

  it('deletes a share with its export, its data and its loop device, and no other share', async () => {
    const [first, second, ...others] = (await yard.get(shares)).body.results;
    expect(await yard.ended(await yard.delete(`${shares}/${second.id}`))).toMatchObject({
      state: 'FINISHED',
      task_type: 'delete_sfs',
    });
    expect((await yard.get(`${shares}/${second.id}`)).status).toBe(404);
    await expect(list(second)).rejects.toThrow(/ACCES|NOENT/);
    expect(existsSync(join(yard.dataDir, 'file-shares/images', `${second.id}.xfs`))).toBe(false);
    expect(await list(first)).toContain('file');
    await expectHostEqualsRows(yard);
    await expectConsistent(yard, others.length + 1);
  });

  it('leaves nothing on the host when the last share is deleted', async () => {
    const { results } = (await yard.get(shares)).body;
    for (const { id } of results) await yard.ended(await yard.delete(`${shares}/${id}`));
    await expectConsistent(yard, 0);
    await expectHostEqualsRows(yard);
    expect((await server.stop()).code).toBe(0);
  });
});
