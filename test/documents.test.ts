/**
 * Documents: linked files and headings exist, the READMEs of some folders name all files, and the packages of the drivers,
 * without Ceph, are installed everywhere.
 */
import { existsSync, globSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hostDriverKinds } from '../src/drivers/kinds.ts';
import { packagesOf } from '../src/drivers/programs.ts';

const files = globSync(['*.md', 'docs/**/*.md', 'bench/**/*.md', 'src/**/*.md', 'test/**/*.md']);

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

const sources = globSync('{src,bin,test,bench,console/src}/**/*.{ts,mjs}');

/** Pairs such as `transaction` (platform/db.ts) and `quick` in http/create-app.ts. A path may begin below src/. */
function placesIn(file: string): { name: string; path: string }[] {
  const text = readFileSync(file, 'utf8').replaceAll(/\n\s*/g, ' ');
  const pairs = text.matchAll(/`([A-Za-z]+)`,? (?:in |of |\()`?((?:[\w-]+\/)+[\w-]+\.(?:ts|mjs))/g);
  return [...pairs].map(([, name = '', path = '']) => ({ name, path }));
}

describe('names in documents', () => {
  it.each(files.filter((file) => placesIn(file).length > 0))('of %s are in the files that it gives', (file) => {
    const wrong = placesIn(file).filter(({ name, path }) => {
      const found = sources.filter((source) => `/${source}`.endsWith(`/${path}`));
      return !found.some((source) => new RegExp(`\\b${name}\\b`).test(readFileSync(source, 'utf8')));
    });
    expect(wrong).toEqual([]);
  });
});

/** In the section of a file, the code names the places to edit: `in \`editable\``. */
describe('adding-a-field.md', () => {
  it('names declarations that exist', () => {
    const sections = readFileSync('docs/adding-a-field.md', 'utf8').split(/^## /m);
    const places = sections.flatMap((section) => {
      const [, file] = /`(src\/[\w/-]+\.ts)`\./.exec(section) ?? [];
      return [...section.matchAll(/^\/\/ .*in `(\w+)`$/gm)].map(([, name]) => ({ file: file!, name }));
    });
    expect(places).toHaveLength(4);
    const isDeclared = ({ file, name }: (typeof places)[number]) =>
      new RegExp(`^(?:export )?(?:const|function) ${name}\\b`, 'm').test(readFileSync(file, 'utf8'));
    expect(places.filter((place) => !isDeclared(place))).toEqual([]);
  });
});

/** `fileShare` is declared in `file-share.ts`. A new kind needs no line in the README. */
const filesOfKinds = Object.keys(hostDriverKinds).map((kind) => `${kind.replaceAll(/[A-Z]/g, '-$&').toLowerCase()}.ts`);
const isOfKind = (file: string) => filesOfKinds.includes(file);

describe('the README', () => {
  it.each(['src/drivers', 'src/http', 'src/platform', 'src/tasks'])('of %s names every file', (folder) => {
    const text = readFileSync(join(folder, 'README.md'), 'utf8');
    const names = globSync('*.ts', { cwd: folder }).filter((name) => !name.endsWith('.test.ts') && !isOfKind(name));
    expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
  });

  it('of test names every file and folder that is not a test', () => {
    const text = readFileSync('test/README.md', 'utf8');
    const names = readdirSync('test', { withFileTypes: true })
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .filter((name) => name !== 'README.md' && !name.endsWith('.test.ts'));
    expect(names.filter((name) => !text.includes(`\`${name}`))).toEqual([]);
  });
});

/** Installed on every Debian host. */
const essential = ['mount', 'util-linux'];
const packages = packagesOf(Object.values(hostDriverKinds).flatMap(({ programs }) => programs)).filter(
  (name) => !essential.includes(name),
);

describe('the packages of the drivers in drivers/kinds.ts', () => {
  const places = ['README.md', 'CONTRIBUTING.md', 'docs/operating.md', 'docs/guides/production.md'];
  it.each([...places, '.ci/run', 'packaging/deb/metadata.ts'])('are in %s', (file) => {
    const words = readFileSync(file, 'utf8').split(/[^\w-]+/);
    expect(packages.filter((name) => !words.includes(name))).toEqual([]);
  });
});

it('here-documents are in code that is not indented, so that their ends are found', () => {
  const blocks = files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/^ +```sh\n[^]*?^ +```/gm)]);
  expect(blocks.map(([block]) => block).filter((block) => block.includes('<<'))).toEqual([]);
});

describe('settings in code blocks', () => {
  const files = globSync(['*.md', 'docs/**/*.md', 'packaging/**/*.md']);
  it.each(files)('of %s have no comment on their line, which systemd reads as a part of the value', (file) => {
    const lines = readFileSync(file, 'utf8').split('\n');
    expect(lines.filter((line) => /^ *(CLOUDYARD_\w+|DATABASE_URL)=('[^']*'|\S+) +#/.test(line))).toEqual([]);
  });
});
