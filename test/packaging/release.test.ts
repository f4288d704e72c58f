/** The parts of `npm run release` that are not packages. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { productionPackages } from '../../packaging/production-packages.ts';
import { billOfMaterials } from '../../packaging/release/bill-of-materials.ts';
import { changelogSection } from '../../packaging/release/changelog-section.ts';
import { checksums } from '../../packaging/release/checksums.ts';
import { root } from '../../src/platform/program-files.ts';
import { version } from '../../src/main/version.ts';

describe('the changes of a release', () => {
  const released = '## [0.2.0] - 2026-01-02\n\n### Fixed\n\n- Second.\n\n## [0.1.0] - 2026-01-01\n\n- First.\n';

  it('are the unreleased entries while they have no version', () => {
    const changelog = `# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Third [link](a.md).\n\n${released}`;
    expect(changelogSection(changelog, '0.2.0')).toBe('### Added\n\n- Third [link](a.md).\n');
  });

  it('are the section of the version otherwise, up to the next version', () => {
    for (const changelog of [released, `## [Unreleased]\n\n${released}`]) {
      expect(changelogSection(changelog, '0.2.0')).toBe('### Fixed\n\n- Second.\n');
      expect(changelogSection(changelog, '0.1.0')).toBe('- First.\n');
    }
  });

  it('are required', () => {
    const message = 'CHANGELOG.md has no entries under [Unreleased] or [0.3.0]';
    expect(() => changelogSection(`## [Unreleased]\n\n${released}`, '0.3.0')).toThrow(message);
  });

  it('of this version are in CHANGELOG.md', () => {
    expect(changelogSection(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version)).toMatch(/^- /m);
  });
});

it('checksums are in the format of sha256sum, sorted by name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-checksums-'));
  const files = [
    ['b.txt', 'abc'],
    ['a.txt', ''],
  ] as const;
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
  const sums = await checksums(files.map(([name]) => join(folder, name)));
  rmSync(folder, { recursive: true });
  expect(sums.split('\n')).toEqual([
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.txt',
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.txt',
    '',
  ]);
});

describe('the bill of materials', () => {
  const text = billOfMaterials(root, version, 1_800_000_000);
  const document = JSON.parse(text) as {
    creationInfo: { created: string };
    packages: Record<'name' | 'SPDXID' | 'versionInfo' | 'licenseDeclared', string>[];
    relationships: Record<'spdxElementId' | 'relationshipType' | 'relatedSpdxElement', string>[];
  };

  it('lists Cloudyard, Node, PostgreSQL and each npm package that an installation contains', () => {
    const names = document.packages.map(({ name }) => name);
    const dependencies = productionPackages(root).map(({ path }) => path.replace(/^.*node_modules\//, ''));
    expect(dependencies).toContain('fastify');
    expect(new Set(names)).toEqual(new Set(['cloudyard', 'node', 'postgresql', ...dependencies]));
    expect(document.packages.filter(({ licenseDeclared }) => licenseDeclared === 'NOASSERTION')).toEqual([]);
  });

  it('refers to existing elements by valid, unique names', () => {
    const elements = document.packages.map(({ SPDXID }) => SPDXID);
    expect(new Set(elements).size).toBe(elements.length);
    expect(elements.filter((element) => !/^SPDXRef-[A-Za-z0-9.-]+$/.test(element))).toEqual([]);
    const known = new Set([...elements, 'SPDXRef-DOCUMENT']);
    const unknown = document.relationships
      .flatMap(({ spdxElementId, relatedSpdxElement }) => [spdxElementId, relatedSpdxElement])
      .filter((element) => !known.has(element));
    expect(unknown).toEqual([]);
    expect(document.relationships).toHaveLength(elements.length);
  });

  it('is the same text each time, with the time of the commit', () => {
    expect(billOfMaterials(root, version, 1_800_000_000)).toBe(text);
    expect(document.creationInfo.created).toBe('2027-01-15T08:00:00Z');
  });
});
