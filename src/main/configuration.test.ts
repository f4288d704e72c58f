/** The files of an operator, with the flavors and prices of load balancers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { readConfiguration } from './configuration.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-configuration-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function read(flavors: string, unitHours: string, currency = 'EUR') {
  const regions = join(folder, 'regions.yaml');
  const region = `{ id: 1, display_name: here, country: LU, price_book: prices.yaml, load_balancer_flavors: ${flavors} }`;
  writeFileSync(regions, `regions: [${region}]\n`);
  writeFileSync(join(folder, 'prices.yaml'), `currency: ${currency}\ntax_percent: "0"\nunit_hours: ${unitHours}\n`);
  return readConfiguration({ regions, quotas: 'config/quotas.yaml' }, silentLogger);
}

const flavor = (text: string) => `[{ name: ${text} }]`;

describe('the flavors of load balancers', () => {
  it('have names of the operator, and prices by these names', () => {
    const configuration = read(flavor('tiny.2_x, vcpus: 1024, ram: 1'), '{ load_balancer_tiny.2_x: "0.01" }');
    expect(configuration.regions[0]!.load_balancer_flavors).toEqual([{ name: 'tiny.2_x', vcpus: 1024, ram: 1 }]);
    expect(configuration.bookOfRegion(1)!.unit_hours).toEqual({ 'load_balancer_tiny.2_x': '0.01' });
  });

  it.each([
    ['[]', 'load_balancer_flavors'],
    [flavor('"a b", vcpus: 1, ram: 1'), 'load_balancer_flavors.0.name'],
    [flavor(`${'x'.repeat(64)}, vcpus: 1, ram: 1`), 'load_balancer_flavors.0.name'],
    [flavor('tiny, vcpus: 0, ram: 1'), 'load_balancer_flavors.0.vcpus'],
    [flavor('tiny, vcpus: 1, ram: 0.5'), 'load_balancer_flavors.0.ram'],
    [flavor('tiny, vcpus: 1'), 'load_balancer_flavors.0.ram: is required'],
    [flavor('tiny, vcpus: 1, ram: 1, disk: 1'), 'load_balancer_flavors.0.disk'],
  ])('%s stop the start', (flavors, path) => expect(() => read(flavors, '{}')).toThrow(path));

  it.each(['load_balancer_', '"load_balancer_a b"', 'volume_floppy_gib'])('have no price as %s', (unit) => {
    const { bookOfRegion } = read(flavor('tiny, vcpus: 1, ram: 1'), `{ ${unit}: "1" }`);
    expect(() => bookOfRegion(1)).toThrow(unit.replaceAll('"', ''));
  });
});

describe('the regions file', () => {
  const storage = '{ driver: ceph, conf: ceph.conf, user: c, pool: p, filesystem: f }';
  it.each([
    ['', 'regions.0.country: is required'],
    ['country: LUX', 'regions.0.country: must be a country code of two letters, ISO 3166-1'],
    ['country: LU, volume_types: [cold, standard, cold]', 'regions.0.volume_types.2: repeats item 0'],
    [`country: LU, storage: ${storage}`, 'regions.0.storage.conf: must be an absolute path'],
  ])('with "%s" has an error in plain words', (fields, message) => {
    const regions = join(folder, 'regions.yaml');
    writeFileSync(regions, `regions: [{ id: 1, display_name: here, ${fields} }]\n`);
    expect(() => readConfiguration({ regions, quotas: 'config/quotas.yaml' }, silentLogger)).toThrow(message);
  });
});

it('a file that is not YAML has an error of one line', () => {
  const regions = join(folder, 'regions.yaml');
  writeFileSync(regions, 'regions: [\n');
  const read = () => readConfiguration({ regions, quotas: 'config/quotas.yaml' }, silentLogger);
  expect(read).toThrow(
    `${regions}:2:1: Flow sequence in block collection must be sufficiently indented and end with a ]`,
  );
  expect(read).not.toThrow('\n');
});

describe('a price book', () => {
  it.each(['abc', '"1.2.3"', '-1', '[]'])('with the price %s has one error', (price) => {
    const { bookOfRegion } = read(flavor('tiny, vcpus: 1, ram: 1'), `{ snapshot_gib: ${price} }`);
    const rule = 'must be a price from 0 to 1,000,000,000,000 such as "0.015"';
    expect(() => bookOfRegion(1)).toThrow(`${join(folder, 'prices.yaml')}:3:29: unit_hours.snapshot_gib: ${rule}`);
    expect(() => bookOfRegion(1)).not.toThrow('\n');
  });

  it('with another currency names the possible ones', () => {
    const { bookOfRegion } = read(flavor('tiny, vcpus: 1, ram: 1'), '{}', 'GBP');
    expect(() => bookOfRegion(1)).toThrow('1:11: currency: must be one of "AZN", "EUR", "USD"');
  });

  it('accepts prices as text and as numbers', () => {
    const { bookOfRegion } = read(flavor('tiny, vcpus: 1, ram: 1'), '{ snapshot_gib: "0.015", volume_cold_gib: 0.5 }');
    expect(bookOfRegion(1)!.unit_hours).toEqual({ snapshot_gib: '0.015', volume_cold_gib: 0.5 });
  });
});

it('a file that cannot be read is named', () => {
  const files = { regions: join(folder, 'absent.yaml'), quotas: 'config/quotas.yaml' };
  expect(() => readConfiguration(files, silentLogger)).toThrow(`${files.regions} cannot be read (ENOENT)`);
});
