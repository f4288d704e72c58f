import { describe, expect, it } from 'vitest';
import { formatted } from './output.ts';

const rows = [
  { id: 1, name: 'one', status: 'available', tags: [{ key: 'team', value: 'web' }], network: { id: 7 }, note: null },
  { id: 22, name: 'a\u001b[31mred\nline', status: '', tags: [], network: null, note: 'x' },
];
const fields = ['id', 'name', 'status', 'tags', 'network', 'note'];

describe('formatted', () => {
  it('aligns a table, without characters that control a terminal', async () => {
    expect(await formatted(rows, fields, { columns: 'id,name,status,tags' })).toBe(
      [
        'ID  NAME            STATUS     TAGS',
        '1   one             available  team=web',
        '22  a [31mred line  -          -',
        '',
      ].join('\n'),
    );
  });

  it('has all columns when it is wide', async () => {
    const [head] = (await formatted(rows, fields, { output: 'wide' })).split('\n');
    expect(head!.trim().split(/\s+/)).toEqual(['ID', 'NAME', 'STATUS', 'TAGS', 'NETWORK', 'NOTE']);
  });

  it('prints nothing for an empty list, except as JSON and YAML', async () => {
    expect(await formatted([], fields, {})).toBe('');
    expect(await formatted([], fields, { output: 'json' })).toBe('[]\n');
    expect(await formatted([], fields, { output: 'yaml' })).toBe('[]\n');
  });

  it('prints nothing for an empty object, except as JSON and YAML', async () => {
    for (const options of [{}, { output: 'wide' }, { quiet: true }]) expect(await formatted({}, [], options)).toBe('');
    expect(await formatted({}, [], { output: 'json' })).toBe('{}\n');
    expect(await formatted({}, ['a_limit'], { columns: 'a_limit' })).toBe('a_limit  -\n');
  });

  it('selects columns by path in every format', async () => {
    const options = { columns: 'id,network.id' };
    expect(JSON.parse(await formatted(rows, fields, { ...options, output: 'json' }))).toEqual([
      { id: 1, 'network.id': 7 },
      { id: 22, 'network.id': null },
    ]);
    expect(await formatted(rows[0], fields, { ...options, output: 'yaml' })).toBe('id: 1\nnetwork.id: 7\n');
    expect(await formatted(rows[0], fields, options)).toBe('id          1\nnetwork.id  7\n');
  });

  it('prints only IDs, or names of what has no ID, when it is quiet', async () => {
    expect(await formatted(rows, fields, { quiet: true })).toBe('1\n22\n');
    expect(await formatted({ name: 'key' }, fields, { quiet: true })).toBe('key\n');
    expect(await formatted(rows, fields, { quiet: true, columns: 'id,status' })).toBe('1\tavailable\n22\t\n');
  });

  it('refuses unknown columns and formats', async () => {
    await expect(formatted([], fields, { columns: 'id,nmae' })).rejects.toThrow('unknown column nmae; known: id, name');
    await expect(formatted(rows, fields, { output: 'xml' })).rejects.toThrow(
      '--output must be one of: table, wide, json, yaml',
    );
  });

  it.each(['json', 'yaml'])('has no character in %s that controls a terminal', async (output) => {
    const { parse } = await import('yaml');
    for (const data of [
      { description: 'a\u001b[31mred\u009b0m\u007f', tags: { 'key\u009b2J': 'value', other: 'é: \n\u0085' } },
      [{ name: '\u009b31m' }, { name: 'line one\nline two\n' }],
      'text\u009b31m',
    ]) {
      const text = await formatted(data, [], { output });
      // eslint-disable-next-line no-control-regex
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
      expect(output === 'json' ? JSON.parse(text) : parse(text)).toEqual(data);
    }
  });
});
