/**
 * Failing storage and power loss at every file operation of the drivers' state. After a failed operation the driver reports
 * an error, and the same call succeeds once the storage works. After a power loss what a driver reported as done is there,
 * and a new driver on the same directory converges.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { recordTree } from '../../test/power-loss.ts';
import { storageFaults, withFault, withLayer, type StorageFault } from '../../test/storage-layer.ts';
import { silentLogger } from '../platform/log.ts';
import { createDiskDriver } from './disk/driver.ts';
import { layoutOf as diskLayout } from './disk/layout.ts';
import { DriverError } from './driver.ts';
import * as ganeshaLayout from './ganesha/layout.ts';
import * as ganesha from './ganesha/specs.ts';
import { idsIn } from './id-files.ts';
import * as haproxyLayout from './haproxy/layout.ts';
import * as haproxy from './haproxy/specs.ts';
import { balancer } from './haproxy/test-host.ts';
import { removeSpec, saveSpec } from './spec-files.ts';
import { snapshot } from './test-desired.ts';

vi.mock('node:fs/promises', async (original) =>
  (await import('../../test/storage-layer.ts')).layered(await original()),
);

const signal = new AbortController().signal;
const [one, other, third] = [
  '11111111-1111-4111-8111-111111111111',
  '22222222-2222-4222-8222-222222222222',
  '33333333-3333-4333-8333-333333333333',
];

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'cloudyard-storage-'))));
/** Those of HAProxy are outside the data directory. */
let runtimeFolders: string[] = [];
afterEach(() => {
  for (const each of [folder, ...runtimeFolders]) rmSync(each, { recursive: true, force: true });
  runtimeFolders = [];
});

async function haproxyFolders(dataDir: string): Promise<haproxyLayout.Layout> {
  const layout = haproxyLayout.layoutOf(dataDir);
  runtimeFolders.push(layout.sockets);
  await haproxyLayout.makeFolders(layout);
  return layout;
}

/** One call of a driver on a data directory. */
interface Story {
  /** Opens the state of the directory, as a start does. */
  open(dataDir: string): Promise<Opened>;
}

interface Opened {
  /** Everything that exists before the call. */
  arrange(): Promise<void>;
  act(): Promise<unknown>;
  /** What exists before the call and is not changed by it. */
  checkKept(): Promise<void>;
  /** The state after the call. */
  checkDone(): Promise<void>;
}

/** A volume with data, its snapshot, and one call. */
function diskStory(call: (driver: ReturnType<typeof createDiskDriver>) => Promise<unknown>, done: Done): Story {
  return {
    async open(dataDir) {
      const driver = createDiskDriver({ dataDir, withoutReflinks: true, copyWaitMs: 60_000 });
      await driver.start();
      const layout = diskLayout(dataDir);
      return {
        async arrange() {
          await driver.apply(volume(one, 1), signal);
          await writeSynced(layout.volume(one), 'first');
          await driver.snapshots.apply(snapshot(one, { id: third }), signal);
          await writeSynced(layout.volume(one), 'later');
        },
        act: () => call(driver),
        async checkKept() {
          expect(await driver.snapshots.list()).toContain(third);
          expect(head(layout.snapshot(third))).toBe('first');
        },
        checkDone: () => done(driver, layout),
      };
    },
  };
}

type Done = (driver: ReturnType<typeof createDiskDriver>, layout: ReturnType<typeof diskLayout>) => Promise<void>;

const volume = (id: string, sizeGib: number, rest: object = {}) =>
  ({ id, sizeGib, source: null, revertTo: null, ...rest }) as never;

/** As a client of a volume does. */
async function writeSynced(path: string, text: string): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(text, 0);
  await file.sync();
  await file.close();
}

function head(path: string): string {
  const file = openSync(path, 'r');
  const buffer = Buffer.alloc(5);
  readSync(file, buffer, 0, 5, 0);
  closeSync(file);
  return buffer.toString();
}

/** The spec of a load balancer with a certificate, whose file the spec names. */
function certificateStory(): Story {
  return {
    async open(dataDir) {
      const layout = await haproxyFolders(dataDir);
      const save = async (id: string, pem: string) => {
        const certificate = { id: third, pem };
        const { spec, files } = haproxy.extractFiles({ ...balancer({}, { certificate }), id });
        await haproxy.writeFiles(layout, files);
        await saveSpec(layout, spec);
      };
      const pemOf = async (id: string) => {
        const spec = (await haproxy.loadSpecs(layout, silentLogger)).find((each) => each.id === id);
        return head(layout.certificate(spec!.listeners[0]!.certificate!.pem));
      };
      return {
        arrange: async () => {
          await save(one, 'first');
          await save(other, 'other');
        },
        act: () => save(one, 'later'),
        checkKept: async () => expect(await pemOf(other)).toBe('other'),
        checkDone: async () => expect(await pemOf(one)).toBe('later'),
      };
    },
  };
}

/** Specs of a kind of driver, as files. */
function specStory(kind: 'haproxy' | 'ganesha', call: 'save' | 'remove' | 'quarantine'): Story {
  return {
    async open(dataDir) {
      const specs = kind === 'haproxy' ? await balancerSpecs(dataDir) : await shareSpecs(dataDir);
      return {
        arrange: async () => {
          await specs.save(one, 1);
          await specs.save(other, 1);
        },
        act: () => (call === 'save' ? specs.save(one, 2) : specs.remove(one, call === 'quarantine')),
        async checkKept() {
          expect(await specs.list()).toContainEqual([other, 1]);
        },
        async checkDone() {
          const own = (await specs.list()).filter(([id]) => id === one);
          expect(own).toEqual(call === 'save' ? [[one, 2]] : []);
          if (call === 'quarantine') expect(await specs.quarantined()).toEqual([one]);
        },
      };
    },
  };
}

async function balancerSpecs(dataDir: string) {
  const layout = await haproxyFolders(dataDir);
  return {
    save: (id: string, port: number) =>
      saveSpec(layout, { ...haproxy.extractFiles(balancer({})).spec, id, tenant: String(port) }),
    remove: (id: string, quarantine: boolean) => removeSpec(layout, id, { quarantine }),
    list: async () =>
      (await haproxy.loadSpecs(layout, silentLogger)).map(({ id, tenant }): [string, number] => [id, Number(tenant)]),
    quarantined: () => idsIn(layout.quarantine, '.json'),
  };
}

async function shareSpecs(dataDir: string) {
  const layout = ganeshaLayout.layoutOf(dataDir);
  await ganeshaLayout.makeFolders(layout);
  return {
    save: (id: string, sizeGib: number) =>
      saveSpec(layout, { id, sizeGib, exportId: 1, device: null, rootSquash: true, access: [] } as never),
    remove: (id: string, quarantine: boolean) => removeSpec(layout, id, { quarantine }),
    list: async () =>
      [...(await ganesha.loadSpecs(layout, silentLogger)).values()].map(({ id, sizeGib }): [string, number] => [
        id,
        sizeGib,
      ]),
    quarantined: () => idsIn(layout.quarantine, '.json'),
  };
}

const stories: Record<string, Story> = {
  'a volume is created': diskStory(
    (driver) => driver.apply(volume(other, 2), signal),
    async (driver, layout) => {
      expect(await driver.list()).toContain(other);
      expect(await driver.apply(volume(other, 2, { settledGib: 2 }), signal)).toMatchObject({ sizeGib: 2 });
      expect(head(layout.volume(one))).toBe('later');
    },
  ),
  'a volume is extended': diskStory(
    (driver) => driver.apply(volume(one, 3, { settledGib: 1 }), signal),
    async (driver, layout) => {
      expect(await driver.apply(volume(one, 3, { settledGib: 3 }), signal)).toMatchObject({ sizeGib: 3 });
      expect(head(layout.volume(one))).toBe('later');
    },
  ),
  'a snapshot is taken': diskStory(
    (driver) => driver.snapshots.apply(snapshot(one, { id: other }), signal),
    async (driver, layout) => {
      expect(await driver.snapshots.list()).toContain(other);
      expect(head(layout.snapshot(other))).toBe('later');
    },
  ),
  'a volume is reverted': diskStory(
    (driver) => driver.apply(volume(one, 1, { settledGib: 1, revertTo: third }), signal),
    async (_driver, layout) => expect(head(layout.volume(one))).toBe('first'),
  ),
  'a volume is removed': diskStory(
    (driver) => driver.remove(one, signal),
    async (driver) => expect(await driver.list()).toEqual([]),
  ),
  'a volume is quarantined': diskStory(
    (driver) => driver.quarantine(one),
    async (driver, layout) => {
      expect(await driver.list()).toEqual([]);
      expect(head(join(layout.quarantine, `${one}.raw`))).toBe('later');
    },
  ),
  'the spec of a load balancer is written': specStory('haproxy', 'save'),
  'the spec of a load balancer is removed': specStory('haproxy', 'remove'),
  'the spec of a load balancer is quarantined': specStory('haproxy', 'quarantine'),
  'the certificate of a load balancer is replaced': certificateStory(),
  'the spec of a file share is written': specStory('ganesha', 'save'),
  'the spec of a file share is removed': specStory('ganesha', 'remove'),
  'the spec of a file share is quarantined': specStory('ganesha', 'quarantine'),
};

describe.each(Object.entries(stories))('while %s', (_name, story) => {
  it.each(Object.keys(storageFaults) as StorageFault[])(
    '%s any file operation is an error, and the next call succeeds',
    async (fault) => {
      let failed = 0;
      for (let at = 1; ; at++) {
        const dataDir = join(folder, String(at));
        const opened = await story.open(dataDir);
        await opened.arrange();
        const { operation, error } = await withFault(fault, at, async () => void (await opened.act()));
        if (!operation) break;
        failed += 1;
        const what = `${fault} ${operation.name} ${operation.targets.join(' ')}`;
        await named(what, async () => {
          if (error === null) await opened.checkDone();
          else if (error instanceof DriverError) expect(error.retryable).toBe(true);
          await opened.checkKept();
          await opened.act();
          await opened.checkDone();
          await opened.checkKept();
        });
        rmSync(dataDir, { recursive: true, force: true });
      }
      expect(failed).toBeGreaterThan(1);
    },
  );

  it('a power loss at any moment loses nothing that was reported as done', async () => {
    let losses = 0;
    const dataDir = join(folder, 'live');
    mkdirSync(dataDir);
    const recorder = recordTree(dataDir, async (what) => {
      if (phase !== 'act') return;
      await lose(what, false);
    });
    let phase: 'arrange' | 'act' = 'arrange';
    const lose = async (when: string, isDone: boolean): Promise<void> => {
      for (const { what, restore } of recorder.states()) {
        const copy = mkdtempSync(join(tmpdir(), 'cloudyard-power-loss-'));
        restore(join(copy, 'live'));
        await named(`${when}: the disk has ${what}`, async () => {
          const opened = await story.open(join(copy, 'live'));
          await opened.checkKept();
          if (isDone) await opened.checkDone();
          await opened.act();
          await opened.checkDone();
        });
        rmSync(copy, { recursive: true });
        losses += 1;
      }
    };
    await withLayer(recorder.layer, async () => {
      const opened = await story.open(dataDir);
      await opened.arrange();
      phase = 'act';
      await opened.act();
    });
    await lose('after the call', true);
    recorder.close();
    expect(losses).toBeGreaterThan(10);
  });
});

async function named(what: string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (error instanceof Error) error.message = `${what}: ${error.message}`;
    throw error;
  }
}
