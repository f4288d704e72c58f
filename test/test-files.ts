/**
 * Groups the test files by what they need, which their imports show.
 * - `system`: whole servers and their attackers, in test/e2e and test/security.
 * - `browser`: the console in Chromium, in test/browser.
 * - `programs`: other files that start programs (they, or test helpers that they import, import what starts some).
 * - `isolated`: files that replace modules, which other files of their process would get, too.
 * - `exhaustive`: files named `*.exhaustive.test.ts`. They need PostgreSQL only, but try every failing step or many random cases.
 * - `fast`: the rest, which needs PostgreSQL only. fast-setup.ts makes a test fail that starts a program anyway.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const startsPrograms =
  /^(node:child_process|.*\/(requires|processes|child-process|daemon|embedded-postgres)(\.test)?\.ts)$/;
const isHelper = /^(test\/.*|.*\/test-[\w-]+\.ts|.*\.contract\.ts)$/;
/** Only `npm run test:packages` runs them: they take minutes, and need programs that no server needs. */
const onDemand = process.env['TEST_PACKAGES'] ? [] : ['test/packaging/{debian,container}.test.ts'];
/** Starts PostgreSQL, once for all files. */
const globalSetup = 'test/postgres.ts';

type Group = 'system' | 'browser' | 'programs' | 'isolated' | 'exhaustive' | 'fast';

export function groupTestFiles(): Record<Group, string[]> {
  const files = globSync(['src/**/*.test.ts', 'bench/**/*.test.ts', 'test/**/*.test.ts', 'console/**/*.test.ts'], {
    cwd: root,
    exclude: onDemand,
  }).sort();
  const system = files.filter((file) => /^test\/(e2e|security)\//.test(file));
  const browser = files.filter((file) => file.startsWith('test/browser/'));
  const others = files.filter((file) => !system.includes(file) && !browser.includes(file));
  const isolated = others.filter(replacesModules);
  const programs = others.filter((file) => !isolated.includes(file) && reachesPrograms(file, new Set()));
  const rest = others.filter((file) => !isolated.includes(file) && !programs.includes(file));
  const isExhaustive = (file: string) => file.endsWith('.exhaustive.test.ts');
  const [exhaustive, fast] = [rest.filter(isExhaustive), rest.filter((file) => !isExhaustive(file))];
  return { system, browser, programs, isolated, exhaustive, fast };
}

function reachesPrograms(file: string, visited: Set<string>): boolean {
  if (visited.has(file) || file === globalSetup) return false;
  visited.add(file);
  return importsOf(file).some((name) => {
    if (startsPrograms.test(name)) return true;
    if (!name.startsWith('.')) return false;
    const target = relative(root, join(root, dirname(file), name));
    return isHelper.test(target) && reachesPrograms(target, visited);
  });
}

function replacesModules(file: string): boolean {
  return /^vi\.(mock|doMock)\(/m.test(readFileSync(join(root, file), 'utf8'));
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/^(?:import|export) (?!type)[^;]*? from '([^']+)'/gm)].map((match) => match[1]!);
}
