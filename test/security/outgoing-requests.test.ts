/**
 * Connections that a tenant causes: to registries of pull secrets (`verify`) and to webhooks. The attacks run in a network
 * namespace with the attacker's name server, the attacker's "public" server (a public address on the namespace's loopback)
 * and an internal service that records its requests. No packet leaves the namespace.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aCertificate } from '../../src/resources/secrets/test-certificates.ts';
import { requires, skipReason } from '../requires.ts';

const namespace = `cloudyard-${process.pid}`;
/** `ip netns exec` mounts the files of this folder over those in /etc. */
const namespaceFiles = `/etc/netns/${namespace}`;
let folder: string;

interface Report {
  /** Responses to the tenant. */
  answers: Record<string, string>;
  /** Requests that reached the internal service, as `address path`. */
  internal: string[];
  /** Requests that reached the attacker's own server. */
  attacker: string[];
}
let report: Report;

const runs = requires('root', 'iproute2');

beforeAll(() => {
  if (!runs) return;
  folder = mkdtempSync(join(tmpdir(), 'cloudyard-outgoing-'));
  execFileSync('ip', ['netns', 'add', namespace]);
  const inside = (...command: string[]) => execFileSync('ip', ['netns', 'exec', namespace, ...command]);
  inside('ip', 'link', 'set', 'lo', 'up');
  for (const address of ['9.9.9.9/32', '169.254.169.254/32']) inside('ip', 'address', 'add', address, 'dev', 'lo');
  mkdirSync(namespaceFiles, { recursive: true });
  writeFileSync(join(namespaceFiles, 'resolv.conf'), 'nameserver 127.0.0.1\noptions attempts:1 timeout:2\n');
  const { pem, keyPem } = aCertificate({ name: 'evil.test', dnsNames: ['evil.test', 'rebinding.test'] });
  writeFileSync(join(folder, 'evil.pem'), pem);
  writeFileSync(join(folder, 'evil.key'), keyPem);
  const script = join(import.meta.dirname, 'outgoing-requests-attacker.ts');
  const printed = execFileSync('ip', ['netns', 'exec', namespace, process.execPath, script, folder], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], NODE_EXTRA_CA_CERTS: join(folder, 'evil.pem') },
    timeout: 100_000,
  });
  report = JSON.parse(printed) as Report;
});

afterAll(() => {
  if (!runs) return;
  execFileSync('ip', ['netns', 'delete', namespace]);
  rmSync(namespaceFiles, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!runs)(skipReason('root', 'iproute2') ?? 'a tenant', () => {
  it('cannot reach an internal service through a registry or a webhook', () => {
    expect(report.internal).toEqual([]);
  });

  it('the attacks work: allowed requests arrive at the attacker', () => {
    // Otherwise the test above would pass even if nothing worked.
    expect(report.attacker).toEqual(expect.arrayContaining(['verify /v2/', 'webhook /hook']));
    expect(report.answers['verify an honest registry']).toBe('accepted');
  });

  it.each(['loopback', 'metadata', 'IPv6', 'mapped', 'short', 'decimal', 'wildcard', 'localhost'])(
    'cannot verify a registry at a %s address',
    (spelling) => {
      expect(report.answers[`verify ${spelling}`]).toMatch(/^(not_allowed|unreachable|no_registry|refused by name)$/);
    },
  );

  it('cannot reach it by a redirect of its registry', () => {
    expect(report.answers['verify a redirect']).toBe('no_registry');
  });

  it('cannot reach it by the token server that its registry names', () => {
    expect(report.answers['verify a token server at loopback']).toBe('not_allowed');
    expect(report.answers['verify a token server at a metadata address']).toBe('not_allowed');
  });

  it('cannot reach it by DNS rebinding', () => {
    expect(report.answers['verify a rebinding name']).not.toBe('accepted');
    expect(report.answers['verify a token server with a rebinding name']).not.toBe('accepted');
    expect(report.answers['webhook to a rebinding name']).toMatch(/not on the public internet/);
  });

  it('cannot reach it by a name with a public and an internal address', () => {
    expect(report.answers['verify a name with two addresses']).toBe('not_allowed');
    expect(report.answers['webhook to a name with two addresses']).toMatch(/not on the public internet/);
  });

  it('cannot reach it by a redirect of its webhook', () => {
    expect(report.answers['webhook with a redirect']).toMatch(/redirects are not followed/);
  });
});
