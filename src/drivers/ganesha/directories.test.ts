import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { directoryStorage } from './directories.ts';
import { layoutOf, makeFolders } from './layout.ts';

const nest =
  'const fs = require("fs"); process.chdir(process.argv[1]); const name = "d".repeat(200);' +
  'for (let i = 0; i < 30; i++) { fs.mkdirSync(name); process.chdir(name) } fs.writeFileSync("file", "x")';

it.each<[string, (share: string) => void]>([
  ['a name that is not UTF-8', (share) => writeFileSync(Buffer.from(`${share}/caf\xe9`, 'latin1'), 'x')],
  ['a path that is too long for the system', (share) => execFileSync(process.execPath, ['-e', nest, share])],
])('a share in which a client created %s is removed', async (_what, create) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-shares-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const layout = layoutOf(dataDir);
  await makeFolders(layout);
  const storage = directoryStorage(layout);
  const id = randomUUID();
  await storage.ensure(id, { gib: 1, settledGib: undefined });
  create(layout.mount(id));
  await storage.remove(id, { quarantine: false });
  expect(existsSync(layout.mount(id))).toBe(false);
});
