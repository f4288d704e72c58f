/** Links between documents: the linked file and heading must exist. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const files = globSync(['*.md', 'docs/**/*.md', 'bench/**/*.md', 'src/**/*.md']);

/** Anchors of a document, derived from its headings like code hosts do. */
function anchorsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8').replaceAll(/^```[^]*?^```/gm, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

describe('documents', () => {
  it.each(files)('%s links to files and headings that exist', (file) => {
    const text = readFileSync(file, 'utf8').replaceAll(/^\s*```[^]*?^\s*```/gm, '');
    const broken = [...text.matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path = '', anchor] = target.split('#');
        const linked = path === '' ? file : join(dirname(file), path);
        if (!existsSync(linked)) return true;
        return anchor !== undefined && !anchorsOf(linked).includes(anchor);
      });
    expect(broken).toEqual([]);
  });
});
