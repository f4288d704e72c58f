/** Requests and responses of secrets (docs/interface.md, "Secrets"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Nullable, Paging, Uuid } from '../../http/shapes.ts';

export const SecretPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, secret_id: Uuid });

const SecretType = Type.Enum(['certificate', 'opaque', 'passphrase', 'private', 'public', 'symmetric']);
export type SecretType = Static<typeof SecretType>;

/**
 * What a load balancer can use a secret as: a certificate with its chain and private key, CA certificates that others
 * are verified against, or revocation lists.
 */
export type SecretKind = 'certificate' | 'ca' | 'crl';

/** Bytes of one secret, all its parts together. A bundle of all public CAs has some 220 KiB. */
export const maxPayloadBytes = 256 * 1024;
/** A little more than the bytes take in base64, for line breaks. */
const maxBase64Length = Math.ceil(maxPayloadBytes * 1.4);

const Pem = (description: string) =>
  Type.String({ format: 'password', maxLength: maxPayloadBytes, writeOnly: true, description });

const SecretName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[^\\u0000-\\u001F\\u007F-\\u009F]*$',
  description: '1 to 255 characters, none of them a control character',
});

const Expiration = Nullable(
  Type.String({ format: 'iso-date-time', description: 'When nothing may use it any more; UTC where it has no zone' }),
);

export const CreateSecret = Type.Object(
  {
    name: SecretName,
    payload: Type.Object(
      {
        certificate: Pem('The certificate, PEM; certificates of its chain may follow'),
        certificate_chain: Pem('The certificates of its chain, PEM; may be empty'),
        private_key: Pem('Its private key, PEM, not encrypted'),
      },
      { additionalProperties: false },
    ),
    expiration: Type.Optional(Expiration),
  },
  { additionalProperties: false },
);
export type CreateSecret = Static<typeof CreateSecret>;

const Information = Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 })));
const MediaType = '^[A-Za-z0-9.+_-]+/[A-Za-z0-9.+_-]+( ?; ?[A-Za-z0-9._-]+=[A-Za-z0-9._-]+)*$';

export const CreateSecretV1 = Type.Object(
  {
    name: SecretName,
    secret_type: SecretType,
    payload: Type.String({
      format: 'password',
      maxLength: maxBase64Length,
      writeOnly: true,
      description:
        'base64; a certificate is a PKCS#12 bundle without a password, or PEM: with its private key, or CA ' +
        'certificates, or revocation lists',
    }),
    payload_content_encoding: Type.Literal('base64'),
    payload_content_type: Type.String({ maxLength: 255, pattern: MediaType }),
    algorithm: Information,
    bit_length: Type.Optional(Nullable(Type.Integer({ exclusiveMinimum: 0, maximum: 2_147_483_647 }))),
    mode: Information,
    expiration: Type.Optional(Expiration),
  },
  { additionalProperties: false },
);
export type CreateSecretV1 = Static<typeof CreateSecretV1>;

export const ListSecrets = Type.Object(Paging(1000));
export type ListSecrets = Static<typeof ListSecrets>;

/** The payload is not among it, and never will be. */
export const Secret = Type.Object({
  id: Uuid,
  name: Type.String(),
  secret_type: SecretType,
  status: Type.String(),
  algorithm: Nullable(Type.String()),
  bit_length: Nullable(Type.Integer()),
  mode: Nullable(Type.String()),
  content_types: Nullable(Type.Record(Type.String(), Type.String())),
  created: Type.String(),
  expiration: Nullable(Type.String()),
});
export type Secret = Static<typeof Secret>;
export const SecretCollection = Collection(Secret);
export type SecretCollection = Static<typeof SecretCollection>;
