import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import { emptyFolder } from './empty-folder.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-empty-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder with files that must remain. */
function ofHost(): string {
  const folder = newFolder();
  for (let i = 0; i < 100; i += 1) writeFileSync(join(folder, `file${i}`), 'of the host');
  return folder;
}

it('removes files, folders and links, with any name, and not what a link leads to', async () => {
  const [folder, outside] = [newFolder(), ofHost()];
  mkdirSync(join(folder, 'a/b/c'), { recursive: true });
  writeFileSync(join(folder, 'a/b/c/file'), 'x');
  symlinkSync(outside, join(folder, 'link'));
  symlinkSync(outside, join(folder, 'a/link'));
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe])]), 'x');
  await emptyFolder(folder);
  expect(readdirSync(folder)).toEqual([]);
  expect(readdirSync(outside)).toHaveLength(100);
});

it('removes folders at any depth without a descriptor for each', async () => {
  const folder = newFolder();
  // No single path of the system reaches the last one.
  const nest =
    'const fs = require("fs"); process.chdir(process.argv[1]);' +
    'for (let i = 0; i < 1000; i++) { fs.writeFileSync("file", "x"); fs.mkdirSync("folder"); process.chdir("folder") }';
  execFileSync(process.execPath, ['-e', nest, folder]);
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const before = descriptors();
  let most = 0;
  const timer = setInterval(() => (most = Math.max(most, descriptors())), 1);
  await emptyFolder(folder).finally(() => clearInterval(timer));
  expect(readdirSync(folder)).toEqual([]);
  expect(most).toBeGreaterThan(before);
  expect(most).toBeLessThan(before + 200);
});

it('does not follow a link to another folder', async () => {
  const [folder, outside] = [newFolder(), ofHost()];
  symlinkSync(outside, join(folder, 'link'));
  await expect(emptyFolder(join(folder, 'link'))).rejects.toThrow('ENOTDIR');
  expect(readdirSync(outside)).toHaveLength(100);
});

/** Replaces a folder by a link and back, until the first number of `state` is set. The second one counts. */
const swap = `
const { mkdirSync, renameSync, symlinkSync, writeFileSync } = require('node:fs');
const { folder, outside, state } = require('node:worker_threads').workerData;
const [here, away, link] = ['here', 'away', 'link'].map((name) => folder + '/' + name);
const attempt = (work) => { try { work(); } catch {} };
const pause = () => { for (const end = performance.now() + 0.1; performance.now() < end; ) continue; };
while (!Atomics.load(state, 0)) {
  attempt(() => mkdirSync(here));
  for (let i = 0; i < 8; i += 1) attempt(() => writeFileSync(here + '/file' + i, ''));
  attempt(() => symlinkSync(outside, link));
  for (let i = 0; i < 20; i += 1) {
    attempt(() => renameSync(here, away));
    attempt(() => renameSync(link, here));
    pause();
    attempt(() => renameSync(here, link));
    attempt(() => renameSync(away, here));
    pause();
  }
  Atomics.add(state, 1, 1);
}`;

it('removes nothing outside while a folder in it is replaced by a link again and again', async () => {
  const [folder, outside] = [newFolder(), ofHost()];
  const state = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(swap, { eval: true, workerData: { folder, outside, state } });
  onTestFinished(() => void worker.terminate());
  while (Atomics.load(state, 1) < 100) {
    await emptyFolder(folder);
    // Without this, few of the folders would have files.
    await new Promise(setImmediate);
  }
  Atomics.store(state, 0, 1);
  expect(readdirSync(outside)).toHaveLength(100);
});
