import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Ajv from 'ajv';
import type { TSchema } from 'typebox';
import { Check } from 'typebox/schema';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { PriceBook } from '../resources/pricing/schema.ts';
import { QuotasFile } from '../resources/quotas/schema.ts';
import { RegionsFile } from '../resources/regions/schema.ts';
import { GroupsFile } from '../resources/sign-in/groups.ts';
import { root } from './program-files.ts';
import { readYamlFile } from './yaml-file.ts';

afterEach(() => void vi.restoreAllMocks());

const shippedFile = (name: string) => join(root, 'config', name);

describe('a configuration file', () => {
  it('is read without compiling its schema, which takes a tenth of the CPU time of a command', () => {
    const compile = vi.spyOn(Ajv.default.prototype, 'compile');
    readYamlFile(shippedFile('regions.yaml'), RegionsFile);
    readYamlFile(shippedFile('quotas.yaml'), QuotasFile);
    readYamlFile(shippedFile('prices.yaml'), PriceBook);
    expect(compile).not.toHaveBeenCalled();
  });

  it('is refused with each of its errors', () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-yaml-'));
    try {
      const file = join(folder, 'regions.yaml');
      writeFileSync(file, 'regions:\n  - id: 0\n    display_name: here\n    country: Luxembourg\n');
      expect(() => readYamlFile(file, RegionsFile)).toThrow(
        `${file}:2:9: regions.0.id: must be at least 1
${file}:4:14: regions.0.country: must be a country code of two letters, ISO 3166-1`,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const texts = ['', 'a', '\n', '0'.repeat(40), 'x'.repeat(101), '😀'.repeat(100), '😀'.repeat(101), '1e5', '/etc'];
const numbers = [0, -1, 1.5, 1e-7, 2 ** 31, Infinity, NaN];
const lists = [
  [],
  [1, 1],
  ['a', 'a'],
  ['a', 'b'],
  [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
  ],
];
/** Every value of the files is replaced by each of these. */
const others: unknown[] = [null, true, {}, { toString: 1 }, ...texts, ...numbers, ...lists];

/** The content with one value replaced, removed or added. */
function* variantsOf(content: unknown): Generator<unknown> {
  yield* others;
  if (Array.isArray(content)) {
    yield [...content, ...content];
    for (const [i, item] of content.entries()) for (const other of variantsOf(item)) yield content.with(i, other);
  } else if (typeof content === 'object' && content !== null) {
    yield { ...content, unknown: 1 };
    for (const [key, value] of Object.entries(content)) {
      const { [key as never]: _, ...rest } = content;
      yield rest;
      for (const other of variantsOf(value)) yield { ...rest, [key]: other };
    }
  }
}

const allFields = {
  storage: { driver: 'ceph', conf: '/etc/ceph/ceph.conf', user: 'cloudyard', pool: 'volumes', filesystem: 'shares' },
  hosts: { nfs_addresses: ['192.0.2.1'], api_address: '192.0.2.2', address_groups: 12, lease_seconds: 15 },
  load_balancer_flavors: [{ name: 'small', vcpus: 1, ram: 2048 }],
  coordinates: { latitude: '49.6', longitude: '6.1' },
  vip_range_v6: '2001:db8::/64',
  member_networks: ['192.0.2.0/24'],
  member_networks_denied: ['192.0.2.1/32'],
};
const shipped = (name: string) => parse(readFileSync(shippedFile(name), 'utf8'));

describe.each<[string, TSchema, any]>([
  ['regions', RegionsFile, { regions: [{ ...shipped('regions.yaml').regions[0], ...allFields }] }],
  ['quotas', QuotasFile, shipped('quotas.yaml')],
  ['prices', PriceBook, shipped('prices.yaml')],
  ['groups', GroupsFile, { groups: [{ group: 'operators', role: 'admin', client: 1, projects: [1, 2] }] }],
])('the check of %s', (_, schema, content) => {
  it('accepts what Ajv accepts, which writes the errors', () => {
    const validate = new Ajv.default({ strict: false }).compile(schema);
    expect([Check(schema, content), validate(content)]).toEqual([true, true]);
    for (const variant of variantsOf(content)) {
      const [found, expected] = [Check(schema, variant), validate(variant)];
      if (found !== expected) expect({ variant, accepted: found }).toEqual({ variant, accepted: expected });
    }
  });
});
