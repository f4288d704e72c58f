/** Accepted payloads and their stored form; every other payload is refused with a message. */
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires } from '../../../test/requires.ts';
import { type Reading, readPayload, readTlsPayload } from './payload.ts';
import { readPem, writePem } from './pem.ts';
import { maxPayloadBytes, type SecretType } from './schema.ts';
import { aCertificate, aKey, aRevocationList, der, keyPemOf } from './test-certificates.ts';

const now = new Date();
const days = (count: number) => new Date(now.getTime() + count * 86_400_000);

const root = aCertificate({ name: 'root' });
const middle = aCertificate({ name: 'middle', issuer: root });
const leaf = aCertificate({ name: 'leaf', issuer: middle, dnsNames: ['a.example', '*.b.example'] });
const unrelated = aCertificate({ name: 'unrelated' });
const encrypted = leaf.key.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }) as string;

const tls = (changes: object = {}) => ({
  certificate: leaf.pem,
  certificate_chain: middle.pem + root.pem,
  private_key: leaf.keyPem,
  ...changes,
});
const read = (changes: object = {}) => readTlsPayload(tls(changes), now);
const readV1 = (type: SecretType, payload: string | Buffer) =>
  readPayload(type, Buffer.from(payload).toString('base64'), { now, clientId: 1 });
const errorsOf = ({ contents, errors }: Reading) => {
  expect(contents === null).toBe(errors.length > 0);
  return errors.map(({ path, message }) => `${path}: ${message}`);
};
const pemOf = ({ contents }: Reading) => contents!.plaintext.toString();
/** The common names of the certificates, in their order, and `key`. */
const orderOf = (reading: Reading) =>
  readPem(pemOf(reading)).map(({ label, bytes }) =>
    label === 'CERTIFICATE' ? new X509Certificate(bytes).subject.replace('CN=', '') : label,
  );

describe('a certificate with its chain and key', () => {
  it('is stored as PEM in the order certificate, issuers, key', async () => {
    const { contents, errors } = await read();
    expect(errors).toEqual([]);
    expect(contents!.plaintext.toString()).toBe(leaf.pem + middle.pem + root.pem + leaf.keyPem);
    expect(contents).toMatchObject({
      kind: 'certificate',
      algorithm: 'ec',
      bitLength: 256,
      notAfter: new X509Certificate(leaf.pem).validToDate,
      subjectNames: ['a.example', '*.b.example'],
    });
  });

  it('may use RSA, EC or Ed25519 and be self-signed', async () => {
    const made = await Promise.all(
      (['rsa', 'ec', 'ed25519'] as const).map(async (type) => {
        const own = aCertificate({ key: aKey(type) });
        return (await read({ certificate: own.pem, certificate_chain: '', private_key: own.keyPem })).contents!;
      }),
    );
    expect(made.map(({ algorithm, bitLength }) => [algorithm, bitLength])).toEqual([
      ['rsa', 2048],
      ['ec', 256],
      ['ed25519', 256],
    ]);
    expect(made[0]!.subjectNames).toEqual(['test.example']);
  });

  it('is sorted if the chain is unordered, has duplicates, or is part of the certificate field', async () => {
    const ordered = ['leaf', 'middle', 'root', 'PRIVATE KEY'];
    expect(orderOf(await read({ certificate_chain: root.pem + middle.pem }))).toEqual(ordered);
    expect(orderOf(await read({ certificate_chain: leaf.pem + root.pem + middle.pem + middle.pem }))).toEqual(ordered);
    expect(orderOf(await read({ certificate: leaf.pem + middle.pem, certificate_chain: root.pem }))).toEqual(ordered);
    expect(orderOf(await read({ certificate: root.pem + middle.pem + leaf.pem, certificate_chain: '' }))).toEqual(
      ordered,
    );
    expect(orderOf(await read({ certificate_chain: ' \n' }))).toEqual(['leaf', 'PRIVATE KEY']);
  });

  it('may contain text around PEM blocks, which is dropped', async () => {
    const noisy = `Bag Attributes\n  bind *:80 #\n${leaf.pem.replaceAll('\n', '\r\n')}subject=CN=leaf\n`;
    const sec1 = `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${keyPemOf(leaf.key, 'sec1')}`;
    expect(pemOf(await read({ certificate: noisy, private_key: sec1 }))).toBe(pemOf(await read()));
    const rsa = aCertificate({ key: aKey('rsa') });
    const pkcs1 = { certificate: rsa.pem, certificate_chain: '', private_key: keyPemOf(rsa.key, 'pkcs1') };
    expect(pemOf(await read(pkcs1))).toBe(rsa.pem + rsa.keyPem);
  });

  it.each([
    ['certificate', 'hello', 'payload.certificate: contains no certificate in PEM (-----BEGIN CERTIFICATE-----)'],
    ['certificate', '', 'payload.certificate: contains no certificate in PEM (-----BEGIN CERTIFICATE-----)'],
    ['certificate', leaf.pem.slice(0, -10), /^payload.certificate: is invalid PEM: block 1 has no line -----END/],
    [
      'certificate',
      leaf.pem.replace('M', '!'),
      'payload.certificate: is invalid PEM: block 1 (CERTIFICATE) is not base64',
    ],
    ['certificate', writePem('CERTIFICATE', Buffer.from('x')), 'payload.certificate: is not an X.509 certificate'],
    ['certificate', leaf.keyPem, 'payload.certificate: contains a PRIVATE KEY; only certificates are allowed'],
    ['certificate_chain', 'hello', /^payload.certificate_chain: contains no certificate in PEM/],
    [
      'certificate_chain',
      middle.pem + writePem('CERTIFICATE', Buffer.from('x')),
      'payload.certificate_chain: certificate 2 is not an X.509 certificate',
    ],
    [
      'certificate_chain',
      middle.pem + unrelated.pem,
      'payload.certificate_chain: certificate 2 issued neither the certificate nor another one of its chain',
    ],
    ['certificate_chain', root.pem, /certificate 1 issued neither/],
    ['private_key', 'hello', 'payload.private_key: contains no private keys in PEM; exactly one is required'],
    [
      'private_key',
      leaf.keyPem + leaf.keyPem,
      'payload.private_key: contains 2 private keys in PEM; exactly one is required',
    ],
    ['private_key', leaf.keyPem + leaf.pem, 'payload.private_key: contains an unexpected CERTIFICATE'],
    ['private_key', writePem('PRIVATE KEY', Buffer.from('x')), 'payload.private_key: the private key cannot be parsed'],
    [
      'private_key',
      writePem('DSA PRIVATE KEY', Buffer.from('x')),
      /^payload.private_key: TLS does not support a DSA PRIVATE KEY/,
    ],
    [
      'private_key',
      writePem('PRIVATE KEY', Buffer.alloc(3073)),
      'payload.private_key: the private key has 3073 bytes; the maximum is 3072 (RSA of 4096 bits has fewer)',
    ],
    ['private_key', encrypted, 'payload.private_key: the private key is encrypted; send it without a passphrase'],
    ['private_key', unrelated.keyPem, 'payload.private_key: the private key does not match the certificate'],
  ])('names the error in %s', async (field, text, error) => {
    const [first, ...more] = errorsOf(await read({ [field]: text }));
    expect(first).toEqual(typeof error === 'string' ? error : expect.stringMatching(error));
    expect(more).toEqual([]);
  });

  it('is reported as encrypted if the key uses the old PEM encryption', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const old = privateKey.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'x' }) as string;
    expect(old).toContain('Proc-Type: 4,ENCRYPTED');
    expect(errorsOf(await read({ private_key: old }))).toEqual([
      'payload.private_key: the private key is encrypted; send it without a passphrase',
    ]);
  });

  it('is refused with an RSA key whose signatures would slow down the load balancers of other tenants', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4104 });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    expect(errorsOf(await read({ private_key: pem }))).toEqual([
      'payload.private_key: the private key has 4104 bits; use RSA of at most 4096 bits, or ECDSA',
    ]);
  });

  it('is refused if only the public half of the key matches', async () => {
    const bytes = readPem(leaf.keyPem)[0]!.bytes;
    // The private half of a P-256 key in PKCS#8 begins at byte 36.
    bytes[50]! ^= 1;
    expect(errorsOf(await read({ private_key: writePem('PRIVATE KEY', bytes) }))).toEqual([
      'payload.private_key: the private key does not match the certificate',
    ]);
  });

  it('is refused outside its validity period, and so is its chain', async () => {
    const dated = async (notBefore: Date, notAfter: Date) => {
      const authority = aCertificate({ name: 'dated', notBefore, notAfter });
      const own = aCertificate({ issuer: authority, notBefore, notAfter });
      return read({ certificate: own.pem, certificate_chain: authority.pem, private_key: own.keyPem });
    };
    const at = (date: Date) => `${date.toISOString().slice(0, 19)}Z`;
    expect(errorsOf(await dated(days(-9), days(-1)))).toEqual([
      `payload.certificate: the certificate expired on ${at(days(-1))}`,
      `payload.certificate_chain: the certificate expired on ${at(days(-1))}`,
    ]);
    expect(errorsOf(await dated(days(1), days(9)))).toEqual([
      `payload.certificate: the certificate is not valid before ${at(days(1))}`,
      `payload.certificate_chain: the certificate is not valid before ${at(days(1))}`,
    ]);
  });

  it('is refused if OpenSSL would not serve it', async () => {
    const weak = aCertificate({ key: aKey('rsa', 1024) });
    expect(errorsOf(await read({ certificate: weak.pem, certificate_chain: '', private_key: weak.keyPem }))).toEqual([
      'payload.certificate: OpenSSL refuses it: ee key too small',
    ]);
  });

  it('is refused if it or its chain is too large', async () => {
    expect(errorsOf(await read({ certificate_chain: ' '.repeat(maxPayloadBytes) }))[0]).toMatch(
      /^payload: has \d+ bytes; the maximum is /,
    );
    expect(errorsOf(await read({ certificate_chain: middle.pem.repeat(21) }))).toEqual([
      'payload.certificate_chain: contains 21 certificates besides the certificate of the key; the maximum is 20',
    ]);
  });

  it('reports all errors at once', async () => {
    const old = aCertificate({ notAfter: days(-1), notBefore: days(-2) });
    const errors = errorsOf(await read({ certificate: old.pem, certificate_chain: `${unrelated.pem}${root.pem}` }));
    expect(errors.map((error) => error.split(':')[0])).toEqual([
      'payload.certificate',
      'payload.private_key',
      'payload.certificate_chain',
      'payload.certificate_chain',
    ]);
  });
});

describe('a payload in base64', () => {
  it('may be a certificate with its key in any order', async () => {
    const reading = await readV1('certificate', root.pem + leaf.keyPem + middle.pem + leaf.pem);
    expect(orderOf(reading)).toEqual(['leaf', 'middle', 'root', 'PRIVATE KEY']);
    expect(reading.contents).toMatchObject({ kind: 'certificate', algorithm: 'ec', bitLength: 256 });
  });

  it('may be CA certificates, at least one of which must be valid', async () => {
    const old = aCertificate({ name: 'old', notBefore: days(-9), notAfter: days(-1) });
    for (const type of ['certificate', 'public', 'opaque'] as const) {
      const reading = await readV1(type, old.pem + root.pem);
      expect(reading.contents).toMatchObject({ kind: 'ca', notAfter: new X509Certificate(root.pem).validToDate });
      expect(orderOf(reading)).toEqual(['old', 'root']);
    }
    expect(errorsOf(await readV1('certificate', old.pem))).toEqual([
      expect.stringContaining('the certificate expired on'),
    ]);
    expect((await readV1('certificate', new X509Certificate(root.pem).raw)).contents).toMatchObject({ kind: 'ca' });
  });

  it('may be revocation lists, all of which must be valid', async () => {
    const [long, short, endless] = [days(30), days(10), null].map((end) => aRevocationList(root, end));
    const reading = await readV1('certificate', long! + short! + endless!);
    expect(reading.contents).toMatchObject({ kind: 'crl', algorithm: null });
    expect(reading.contents!.notAfter!.toISOString().slice(0, 19)).toBe(days(10).toISOString().slice(0, 19));
    expect(pemOf(reading)).toBe(long! + short! + endless!);
    expect((await readV1('opaque', endless!)).contents).toMatchObject({ kind: 'crl', notAfter: null });
    expect(errorsOf(await readV1('certificate', long! + aRevocationList(root, days(-1))))).toEqual([
      expect.stringContaining('payload: revocation list 2 expired on'),
    ]);
    expect(errorsOf(await readV1('certificate', long! + root.pem))).toEqual([
      'payload: contains revocation lists and other blocks; store them as separate secrets',
    ]);
    expect(errorsOf(await readV1('certificate', writePem('X509 CRL', Buffer.from('x'))))).toEqual([
      'payload: the revocation list cannot be parsed',
    ]);
  });

  it('may be a key', async () => {
    const rsa = aKey('rsa');
    const publicPem = new X509Certificate(root.pem).publicKey.export({ type: 'spki', format: 'pem' });
    expect((await readV1('private', leaf.keyPem)).contents).toMatchObject({ kind: null, algorithm: 'ec' });
    for (const type of ['pkcs8', 'pkcs1'] as const) {
      const { contents } = await readV1('private', rsa.export({ type, format: 'der' }));
      expect(contents).toMatchObject({ kind: null, algorithm: 'rsa', bitLength: 2048 });
    }
    const sec1 = leaf.key.export({ type: 'sec1', format: 'der' });
    expect((await readV1('private', sec1)).contents).toMatchObject({ plaintext: sec1, algorithm: 'ec' });
    expect((await readV1('public', publicPem)).contents).toMatchObject({ kind: null, algorithm: 'ec' });
    expect(errorsOf(await readV1('private', encrypted))).toEqual([expect.stringContaining('is encrypted')]);
    expect(errorsOf(await readV1('private', 'hello'))).toEqual(['payload: the private key cannot be parsed']);
    expect(errorsOf(await readV1('public', 'hello'))).toEqual([expect.stringContaining('payload: is neither')]);
    expect(errorsOf(await readV1('public', leaf.pem + leaf.keyPem))).toEqual([
      'payload: is neither a public key nor CA certificates',
    ]);
  });

  it('may be arbitrary bytes if its type is opaque or symmetric, and then has no TLS use', async () => {
    const bytes = Buffer.from([0, 255, 128]);
    for (const type of ['opaque', 'symmetric'] as const) {
      expect((await readV1(type, bytes)).contents).toMatchObject({ kind: null, plaintext: bytes, algorithm: null });
    }
    expect((await readV1('passphrase', 'pässword')).contents).toMatchObject({ kind: null });
    expect(errorsOf(await readV1('passphrase', bytes))).toEqual(['payload: is not text in UTF-8']);
    const mismatched = await readV1('opaque', leaf.pem + unrelated.keyPem);
    expect(mismatched.contents).toMatchObject({ kind: null, subjectNames: [] });
  });

  it('is refused if it does not match its type', async () => {
    expect(errorsOf(await readPayload('opaque', 'not base64!', { now, clientId: 1 }))).toEqual([
      'payload: is not base64',
    ]);
    expect(errorsOf(await readPayload('opaque', ' \n', { now, clientId: 1 }))).toEqual(['payload: is empty']);
    expect(errorsOf(await readV1('opaque', Buffer.alloc(maxPayloadBytes + 1)))).toEqual([
      `payload: has ${maxPayloadBytes + 1} bytes; the maximum is ${maxPayloadBytes}`,
    ]);
    const neither = 'payload: is neither PEM, nor a PKCS#12 bundle, nor an X.509 certificate';
    expect(errorsOf(await readV1('certificate', 'hello, test string\n'))).toEqual([neither]);
    expect(errorsOf(await readV1('certificate', leaf.keyPem))).toEqual([
      expect.stringContaining('contains no certificate'),
    ]);
    expect(errorsOf(await readV1('certificate', leaf.pem + unrelated.keyPem))).toEqual([
      'payload: the private key does not match the certificate',
    ]);
  });

  it('accepts base64 with line breaks', async () => {
    const lines = Buffer.from(leaf.pem + leaf.keyPem)
      .toString('base64')
      .replace(/.{76}/g, '$&\n');
    expect((await readPayload('certificate', lines, { now, clientId: 1 })).contents).toMatchObject({
      kind: 'certificate',
    });
  });
});

describe.skipIf(!requires('haproxy'))('an accepted payload', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'cloudyard-secrets-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));
  const file = (name: string, { contents }: Reading) => {
    writeFileSync(join(directory, name), contents!.plaintext);
    return join(directory, name);
  };

  it('is loaded by HAProxy', async () => {
    const pairs = await Promise.all(
      (['rsa', 'ec', 'ed25519'] as const).map(async (type) => {
        const own = aCertificate({ issuer: middle, key: aKey(type) });
        return file(type, await read({ certificate: own.pem, private_key: own.keyPem }));
      }),
    );
    const ca = file('ca', await readV1('certificate', root.pem + middle.pem));
    const crl = file('crl', await readV1('certificate', aRevocationList(root) + aRevocationList(middle)));
    const configuration = join(directory, 'haproxy.cfg');
    const lines = [
      'defaults',
      '  mode http',
      '  timeout connect 1s',
      '  timeout client 1s',
      '  timeout server 1s',
      'frontend f',
      ...pairs.map((pem, i) => `  bind 127.0.0.1:${20001 + i} ssl crt ${pem}`),
      '  default_backend b',
      'backend b',
      `  server s 127.0.0.1:1 ssl verify required ca-file ${ca} crl-file ${crl} crt ${pairs[0]}`,
    ];
    writeFileSync(configuration, `${lines.join('\n')}\n`);
    const checked = spawnSync('haproxy', ['-c', '-f', configuration], { encoding: 'utf8' });
    expect(checked.stderr + checked.stdout).toContain('Configuration file is valid');
  });
});

describe('arbitrary bytes', () => {
  const types = fc.constantFrom<SecretType>('certificate', 'opaque', 'passphrase', 'private', 'public', 'symmetric');
  const pieces = fc.constantFrom(leaf.pem, leaf.keyPem, encrypted, aRevocationList(root), '-----BEGIN ', '-----', '\n');
  const texts = fc.array(fc.oneof(pieces, fc.string({ maxLength: 10 })), { maxLength: 6 }).map((all) => all.join(''));
  /** Nested elements of random tags. */
  const elements = fc.letrec<{ node: Buffer }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 6 },
      fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
      fc
        .tuple(fc.constantFrom(0x30, 0x02, 0x06, 0x04, 0xa0, 0x24), fc.array(tie('node'), { maxLength: 4 }))
        .map(([tag, parts]) => der(tag, ...parts)),
    ),
  })).node;

  it('are accepted or refused without an exception', async () => {
    const version = Buffer.from('020103', 'hex');
    const bundles = elements.map((element) => der(0x30, version, element));
    const bytes = fc.oneof(
      texts.map((text) => Buffer.from(text)),
      elements,
      bundles,
    );
    await fc.assert(
      fc.asyncProperty(types, bytes, async (type, payload) => {
        const { contents, errors } = await readV1(type, payload);
        expect(contents === null).toBe(errors.length > 0);
      }),
      { numRuns: 1000 },
    );
    await fc.assert(
      fc.asyncProperty(texts, texts, texts, async (certificate, certificate_chain, private_key) => {
        const { contents, errors } = await read({ certificate, certificate_chain, private_key });
        expect(contents === null).toBe(errors.length > 0);
      }),
    );
  });

  it('with deep nesting or endless blocks are refused quickly', async () => {
    const deep = Buffer.from('3080', 'hex');
    const nested = Buffer.concat(Array.from({ length: 60_000 }, () => deep));
    expect(errorsOf(await readV1('certificate', nested))).toHaveLength(1);
    const begins = '-----BEGIN CERTIFICATE-----\n'.repeat(9000);
    expect(errorsOf(await readV1('certificate', begins))).toHaveLength(1);
  });
});
