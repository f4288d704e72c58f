import { describe, expect, it } from 'vitest';
import { readManifest } from './manifest.ts';

const share = `kind: file-share
name: data
protocol: NFS
size: 1
network: {network_id: default}
`;

function errorsOf(text: string): string[] {
  try {
    readManifest('a.yaml', text);
  } catch (error) {
    return (error as Error).message.split('\n');
  }
  return [];
}

describe('readManifest', () => {
  it('reads documents and lists, with names in place of IDs', () => {
    const text = `${share}---\n- kind: volume\n  name: disk\n  source: new-volume\n  size: 1\n  project: 2\n---\n# empty\n`;
    const [first, second, ...others] = readManifest('a.yaml', text);
    expect(others).toEqual([]);
    expect(first).toMatchObject({ name: 'data', spec: { size: 1, network: { network_id: 'default' } } });
    expect(first!.at('size')).toBe('a.yaml:4:7');
    expect(second).toMatchObject({ name: 'disk', project: '2' });
    expect(second!.spec).not.toHaveProperty('project');
  });

  it('reads JSON, anchors and names where IDs are integers', () => {
    const text = JSON.stringify({ kind: 'network', name: 'private', tags: { team: 'web' } });
    expect(readManifest('a.json', text)).toMatchObject([{ name: 'private' }]);
    const anchored = `- &base {kind: network, name: one}\n- {<<: *base, kind: network, name: two}\n`;
    expect(readManifest('a.yaml', anchored).map(({ name }) => name)).toEqual(['one', 'two']);
    const disk = 'kind: volume\nname: disk\nsource: new-volume\nsize: 1\nlifecycle_policy_ids: [nightly]\n';
    expect(errorsOf(disk)).toEqual([]);
  });

  it('names an unknown kind and a missing one', () => {
    expect(errorsOf('kind: file-shre\nname: x')[0]).toMatch(/^a\.yaml:1:7: unknown kind "file-shre"; known: project, /);
    expect(errorsOf('name: data')[0]).toMatch(/^a\.yaml:1:1: kind is required; known: /);
    expect(errorsOf('- 1')).toEqual(['a.yaml:1:3: a resource must be a map with a kind']);
  });

  it('names two resources of one name, in different places only if their project is the same', () => {
    expect(errorsOf(`${share}---\n${share}`)).toEqual([
      'a.yaml:8:7: file-share data is already described at a.yaml:2:7',
    ]);
    expect(errorsOf(`${share}---\n${share}project: 2\n`)).toEqual([]);
  });

  it('names every field of a wrong type, unknown, or missing', () => {
    const text = share.replace('size: 1', 'size: big').replace('NFS', 'SMB') + 'netwrk: {}\n';
    expect(errorsOf(text)).toEqual([
      'a.yaml:3:11: protocol must be one of: NFS',
      'a.yaml:4:7: size must be integer',
      'a.yaml:6:1: unknown field netwrk',
    ]);
    const nested = `${share}access:\n  - {ip_address: 10.0.0.1}\n  - {ip_address: 10.0.0.2, access_mode: rw, x: 1}\n`;
    expect(errorsOf(nested)).toEqual([
      'a.yaml:7:5: access.0.access_mode is required',
      'a.yaml:8:45: unknown field access.1.x',
    ]);
  });

  it('says in words what a name or the key of a tag must be, once', () => {
    expect(errorsOf(`kind: network\nname: "-"\ntags: {a b: c, "${'d'.repeat(300)}": e}\n`)).toEqual([
      'a.yaml:2:7: name must be 3 to 63 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-`',
      'a.yaml:3:8: tags.a b must be 1 to 255 characters without whitespace and `=`',
      `a.yaml:3:16: tags.${'d'.repeat(300)} must NOT have more than 255 characters`,
    ]);
    expect(errorsOf(`kind: network\nname: ${'n'.repeat(64)}\n`)).toEqual([
      'a.yaml:2:7: name must NOT have more than 63 characters',
    ]);
    expect(errorsOf('kind: project\nname: shop\ndescription: 5\n')).toEqual([
      'a.yaml:3:14: description must be string',
    ]);
  });

  it('compares with the variant that the file means', () => {
    expect(errorsOf('kind: volume\nname: disk\nsource: snapshot\nsize: 1\n')).toEqual([
      'a.yaml:1:1: snapshot_id is required',
    ]);
  });

  it('names the place of a YAML error', () => {
    expect(errorsOf('kind: volume\nname: [a\n')[0]).toMatch(/^a\.yaml:3:1: /);
    expect(errorsOf('kind: network\nname: a\nname: b\n')[0]).toBe('a.yaml:3:1: Map keys must be unique');
  });
});
