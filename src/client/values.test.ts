import { describe, expect, it } from 'vitest';
import { operationById, propertiesOf } from './table.ts';
import { optionValue, pairs } from './values.ts';

const fieldOf = (operation: string, name: string) => propertiesOf(operationById(operation).body!).get(name)!.schema;

describe('pairs', () => {
  it.each([
    [
      'a=1,b=2',
      [
        ['a', '1'],
        ['b', '2'],
      ],
    ],
    [
      'a="x,y",b=2',
      [
        ['a', 'x,y'],
        ['b', '2'],
      ],
    ],
    ['a="say ""hi"""', [['a', 'say "hi"']]],
    [
      'a={"b":[1,2],"c":"}"},d=2',
      [
        ['a', '{"b":[1,2],"c":"}"}'],
        ['d', '2'],
      ],
    ],
    ['a=', [['a', '']]],
    ['a=x=y', [['a', 'x=y']]],
  ])('reads %s', (text, expected) => {
    expect(pairs('--x', text)).toEqual(expected);
  });

  it.each(['', 'a', 'a=1,,b=2', 'a="x', 'a={"b":1', '=1', 'a="x"y'])('refuses %j', (text) => {
    expect(() => pairs('--x', text)).toThrow('--x must');
  });
});

describe('optionValue', () => {
  it('reads objects of a list, with parts of the names of properties', () => {
    const access = fieldOf('createFileShare', 'access');
    const texts = ['ip=10.0.0.1,mode=rw', 'ip_address=10.0.0.2,access_mode=ro'];
    expect(optionValue('--access', texts, access)).toEqual([
      { ip_address: '10.0.0.1', access_mode: 'rw' },
      { ip_address: '10.0.0.2', access_mode: 'ro' },
    ]);
    expect(optionValue('--access', ['[{"ip_address":"::1"}]'], access)).toEqual([{ ip_address: '::1' }]);
  });

  it('reads nested objects by paths and as JSON', () => {
    const listeners = fieldOf('createLoadBalancer', 'listeners');
    const byPath = 'name=web,protocol_port=80,pools.name=a,pools.protocol=HTTP,pools.name=b';
    expect(optionValue('--listeners', [byPath], listeners)).toEqual([
      { name: 'web', protocol_port: 80, pools: [{ name: 'a', protocol: 'HTTP' }, { name: 'b' }] },
    ]);
    const byJson = 'name=web,pools=[{"name":"a"},{"name":"b"}]';
    expect(optionValue('--listeners', [byJson], listeners)).toEqual([
      { name: 'web', pools: [{ name: 'a' }, { name: 'b' }] },
    ]);
  });

  it('reads maps, in which null removes a tag', () => {
    const tags = fieldOf('updateFileShare', 'tags');
    expect(optionValue('--tags', ['team=web', 'env=test,old=null'], tags)).toEqual({
      team: 'web',
      env: 'test',
      old: null,
    });
    expect(optionValue('--tags', ['null'], tags)).toBeNull();
  });

  it('reads scalars in the type of the field', () => {
    expect(optionValue('--size', ['2'], fieldOf('createFileShare', 'size'))).toBe(2);
    expect(optionValue('--admin', ['false'], fieldOf('updateLoadBalancer', 'admin_state_up'))).toBe(false);
    expect(optionValue('--code', ['302'], fieldOf('createL7Policy', 'redirect_http_code'))).toBe(302);
    expect(optionValue('--name', ['12'], fieldOf('createFileShare', 'name'))).toBe('12');
    const limit = fieldOf('updateClientQuotas', 'sfs_count_limit');
    expect(optionValue('--limit', ['5'], limit)).toBe(5);
    expect(optionValue('--limit', ['null'], limit)).toBeNull();
  });

  it.each([
    ['createFileShare', 'size', ['1.5'], 'must be a whole number, not "1.5"'],
    ['createFileShare', 'size', ['1', '2'], 'can be used only once'],
    ['updateLoadBalancer', 'admin_state_up', ['yes'], 'must be true or false, not "yes"'],
    ['createFileShare', 'access', ['address=1,mod=rw'], 'unknown key "mod"; known: '],
    ['createFileShare', 'access', ['[{'], 'is not valid JSON'],
  ])('of %s %s refuses %j', (operation, name, texts, message) => {
    expect(() => optionValue('--x', texts, fieldOf(operation, name))).toThrow(message);
  });

  it('refuses a part that several names have', () => {
    const listeners = fieldOf('createLoadBalancer', 'listeners');
    expect(() => optionValue('--listeners', ['timeout=1'], listeners)).toThrow(
      'timeout can mean timeout_client_data or timeout_member_connect',
    );
  });
});
