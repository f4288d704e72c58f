/** Requests and responses of secrets (docs/interface.md, "Secrets"). */
import { type Static, Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  Input,
  Instant,
  noControlCharacters,
  Nullable,
  OrNull,
  Uuid,
} from '../../http/shapes.ts';
import { exampleCertificate, examplePrivateKey } from './example-certificate.ts';

const SecretType = Type.Enum(['certificate', 'opaque', 'passphrase', 'private', 'public', 'symmetric'], {
  description: 'Type of the secret; load balancers use certificates',
});
export type SecretType = Static<typeof SecretType>;

/**
 * What a load balancer can use a secret as: a certificate with its chain and private key, CA certificates that others
 * are verified against, or revocation lists.
 */
export type SecretKind = 'certificate' | 'ca' | 'crl';

/** Bytes of one secret, all parts together. A bundle of all public CAs has about 220 KiB. */
export const maxPayloadBytes = 256 * 1024;
/** More than the bytes take in base64, for line breaks. */
const maxBase64Length = Math.ceil(maxPayloadBytes * 1.4);

const Pem = (description: string) =>
  Type.String({ format: 'password', maxLength: maxPayloadBytes, writeOnly: true, description });

const SecretName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: noControlCharacters,
  description: '1 to 255 characters, none of them a control character',
});

const Expiration = Described(
  Nullable(Instant),
  'From this ISO 8601 date on, resources cannot use the secret; UTC without a zone',
);

export const CreateSecret = Body(
  'CreateSecret',
  [
    {
      name: 'my-certificate',
      payload: {
        certificate: exampleCertificate,
        certificate_chain: '',
        private_key: examplePrivateKey,
      },
    },
  ],
  {
    name: SecretName,
    payload: Input(
      'CertificatePayload',
      {
        certificate: Pem('Certificate in PEM; certificates of the chain may follow'),
        certificate_chain: Pem('Certificates of the chain in PEM; may be empty'),
        private_key: Pem('Private key in PEM, not encrypted'),
      },
      'Certificate, chain and private key',
    ),
    expiration: Type.Optional(Expiration),
  },
);
export type CreateSecret = Static<typeof CreateSecret>;

const Information = (description: string) =>
  Type.Optional(Described(Nullable(Type.String({ minLength: 1, maxLength: 255 })), description));
const MediaType = pattern(
  '^[A-Za-z0-9.+_-]+/[A-Za-z0-9.+_-]+( ?; ?[A-Za-z0-9._-]+=[A-Za-z0-9._-]+)*$',
  'a media type such as application/octet-stream',
);

export const CreateSecretV1 = Body(
  'CreateSecretV1',
  [
    {
      name: 'my-secret',
      secret_type: 'opaque',
      payload: 'c2VjcmV0',
      payload_content_encoding: 'base64',
      payload_content_type: 'application/octet-stream',
    },
  ],
  {
    name: SecretName,
    secret_type: SecretType,
    payload: Type.String({
      format: 'password',
      maxLength: maxBase64Length,
      writeOnly: true,
      description:
        'Base64. A certificate is a PKCS#12 bundle without a password, or PEM: a certificate with its private key, CA ' +
        'certificates, or revocation lists',
    }),
    payload_content_encoding: Type.Literal('base64', { description: 'Always `base64`' }),
    payload_content_type: Type.String({
      maxLength: 255,
      pattern: MediaType,
      description: 'Media type of the payload, such as `application/octet-stream`',
    }),
    algorithm: Information('Algorithm, for information'),
    bit_length: Type.Optional(
      Described(
        Nullable(Type.Integer({ exclusiveMinimum: 0, maximum: 2_147_483_647 })),
        'Length of the key in bits, for information',
      ),
    ),
    mode: Information('Mode of the algorithm, for information'),
    expiration: Type.Optional(Expiration),
  },
);
export type CreateSecretV1 = Static<typeof CreateSecretV1>;

/** Never contains the payload. */
export const Secret = Component('Secret', {
  id: Described(Uuid, 'ID of the secret'),
  name: Type.String({ description: 'Name of the secret' }),
  secret_type: SecretType,
  status: Type.String({ description: '`ACTIVE`' }),
  algorithm: OrNull.text('Algorithm'),
  bit_length: OrNull.integer('Length of the key in bits'),
  mode: OrNull.text('Mode of the algorithm'),
  content_types: Described(Nullable(Type.Record(Type.String(), Type.String())), 'Media types of the payload'),
  created: Described(DateTime, 'When the secret was created'),
  expiration: Described(Nullable(DateTime), 'From this date on, resources cannot use the secret; null: no limit'),
});
export type Secret = Static<typeof Secret>;
export const SecretCollection = Collection(Secret);
