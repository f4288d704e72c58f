import { describe, expect, it } from 'vitest';
import { dockerConfigJson, parseRegistry } from './registry.ts';

describe('a registry', () => {
  it.each([
    ['registry.example.com', 'registry.example.com'],
    ['Registry.Example.COM', 'registry.example.com'],
    ['registry.example.com:5000', 'registry.example.com:5000'],
    ['localhost', 'localhost'],
    ['localhost:5000', 'localhost:5000'],
    ['127.0.0.1:5000', '127.0.0.1:5000'],
    ['[::1]:5000', '[::1]:5000'],
    ['https://ghcr.io', 'ghcr.io'],
    ['https://ghcr.io/', 'ghcr.io'],
    ['HTTPS://ghcr.io/v2/', 'ghcr.io'],
    ['http://10.0.0.1:5000/v2/', '10.0.0.1:5000'],
    ['ghcr.io/organization/image', 'ghcr.io'],
  ])('%s is parsed as %s', (text, authority) => {
    expect(parseRegistry(text)).toEqual({ authority, key: authority });
  });

  it.each([
    'docker.io',
    'https://docker.io',
    'index.docker.io',
    'https://index.docker.io/v1/',
    'registry-1.docker.io',
    'docker.io/library',
  ])('%s is parsed as Docker Hub', (text) => {
    expect(parseRegistry(text)).toEqual({ authority: 'registry-1.docker.io', key: 'https://index.docker.io/v1/' });
  });

  it.each([
    'https://user:password@registry.example.com',
    'https://user@registry.example.com/v2/',
    'user:password@registry.example.com',
    '//user:password@host',
    'https://registry.example.com:x@host/',
  ])('%s contains credentials, and the refusal does not repeat them', (text) => {
    expect(parseRegistry(text)).toMatch(/must/);
    expect(parseRegistry(text)).not.toMatch(/password@|user/);
  });

  it.each([
    '',
    ' ',
    ' ghcr.io',
    'ghcr.io\n',
    'ftp://host',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://',
    'https:///v2/',
    'host:',
    'host:0',
    'host:65536',
    'host:http',
    'a..b',
    '-host',
    'host-',
    'ho_st',
    'höst.example',
    '256.1.1.1',
    '1.2.3',
    '2130706433',
    '[::1',
    '[fe80::1%eth0]',
    'host?x',
    'host#x',
    'x'.repeat(64),
    `${'x.'.repeat(127)}xx`,
  ])('refuses %j', (text) => {
    expect(parseRegistry(text)).toMatch(/^must/);
  });

  it('is listed in dockerconfigjson under the key that clients use', () => {
    expect(dockerConfigJson(parseRegistry('docker.io') as never, 'me', 'pa:ß')).toEqual({
      auths: {
        'https://index.docker.io/v1/': {
          username: 'me',
          password: 'pa:ß',
          auth: Buffer.from('me:pa:ß').toString('base64'),
        },
      },
    });
  });
});
