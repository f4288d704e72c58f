/** Costs of the build: what the first page loads, the size of each chunk, and drawing. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../../src/platform/program-files.ts';

const dist = join(root, 'console', 'dist');
const initialBudget = 130_000;
const chunkBudget = 20_000;

interface Chunk {
  readonly file: string;
  readonly isEntry?: boolean;
  readonly imports?: readonly string[];
  readonly css?: readonly string[];
}

const manifest = JSON.parse(readFileSync(join(dist, '.vite', 'manifest.json'), 'utf8')) as Record<string, Chunk>;
const sizeOf = (file: string) => readFileSync(join(dist, `${file}.gz`)).length;

/** The files that a chunk loads before it runs. */
function filesOf(key: string, visited = new Set<string>()): Set<string> {
  const { file, imports = [], css = [] } = manifest[key]!;
  for (const each of [file, ...css]) visited.add(each);
  for (const each of imports) if (!visited.has(manifest[each]!.file)) filesOf(each, visited);
  return visited;
}

describe('the build of the console', () => {
  it('loads at most 130 kB before the first page', () => {
    const entry = Object.keys(manifest).find((key) => manifest[key]!.isEntry)!;
    const total = [...filesOf(entry), 'index.html'].reduce((sum, file) => sum + sizeOf(file), 0);
    expect(total).toBeLessThanOrEqual(initialBudget);
    expect(total).toBeGreaterThan(50_000);
  });

  it('loads parts of libraries that only some pages use with these pages', () => {
    const entry = Object.keys(manifest).find((key) => manifest[key]!.isEntry)!;
    const initial = filesOf(entry);
    const scripts = readdirSync(join(dist, 'assets')).filter((name) => name.endsWith('.js'));
    // Names in useBlocker, useMutation and useQueries, which are not shortened.
    for (const part of ['shouldBlockFn', 'mutateAsync', '.setQueries(']) {
      const files = scripts.filter((name) => readFileSync(join(dist, 'assets', name), 'utf8').includes(part));
      expect({ part, files: files.length }).not.toEqual({ part, files: 0 });
      expect({ part, initial: files.filter((name) => initial.has(`assets/${name}`)) }).toEqual({ part, initial: [] });
    }
  });

  it('has no other chunk larger than 20 kB', () => {
    const initial = filesOf(Object.keys(manifest).find((key) => manifest[key]!.isEntry)!);
    const files = readdirSync(join(dist, 'assets')).filter((name) => /\.(js|css)$/.test(name));
    const large = files
      .map((name) => `assets/${name}`)
      .filter((file) => !initial.has(file) && sizeOf(file) > chunkBudget);
    expect(files.length).toBeGreaterThan(10);
    expect(large).toEqual([]);
  });

  it('blurs nothing behind an element, which each frame would draw again', () => {
    const styles = readdirSync(join(dist, 'assets')).filter((name) => name.endsWith('.css'));
    const texts = styles.map((name) => readFileSync(join(dist, 'assets', name), 'utf8'));
    expect(texts.join()).toContain('.top{');
    expect(texts.filter((text) => text.includes('backdrop-filter'))).toEqual([]);
  });

  it('has every text file compressed', () => {
    const names = readdirSync(join(dist, 'assets'));
    const texts = names.filter((name) => /\.(js|css)$/.test(name));
    expect(texts.filter((name) => !names.includes(`${name}.gz`) || !names.includes(`${name}.br`))).toEqual([]);
  });
});
