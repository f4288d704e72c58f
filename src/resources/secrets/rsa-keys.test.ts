import { expect, it } from 'vitest';
import { readTlsPayload } from './payload.ts';
import { aCertificate, aKeyWithExponent } from './test-certificates.ts';

const own = aCertificate({ key: aKeyWithExponent(65) });
const issued = aCertificate({ name: 'issued', issuer: own });
const allowed = aCertificate({ key: aKeyWithExponent(64) });
const large = 'a public exponent of more than 64 bits';

/** Of a certificate, its chain and its key. */
async function errorsOf(certificate: string, certificate_chain: string, private_key: string): Promise<string[]> {
  const { errors } = await readTlsPayload({ certificate, certificate_chain, private_key }, new Date());
  return errors.map(({ path, message }) => `${path}: ${message}`);
}

it('refuses RSA keys whose exponent makes each signature and verification slow', async () => {
  expect(await errorsOf(own.pem, '', own.keyPem)).toEqual([
    `payload.certificate: has an RSA key with ${large}`,
    `payload.private_key: the private key has ${large}; use 65537`,
  ]);
  expect(await errorsOf(issued.pem, own.pem, issued.keyPem)).toEqual([
    `payload.certificate_chain: has an RSA key with ${large}`,
  ]);
  expect(await errorsOf(allowed.pem, '', allowed.keyPem)).toEqual([]);
});
