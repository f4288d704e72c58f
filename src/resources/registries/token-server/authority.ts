/**
 * The keys of the token server, shared by all API servers: one row, encrypted with the key file. They sign tokens for the
 * hosts, authenticate users, and derive passwords that API servers and hosts share.
 *
 * Tokens are signed with ES256 and name their key by its libtrust fingerprint, by which distribution 2.8 finds it among
 * its certificates. It reads only the key from the certificate, so a self-signed one is sufficient.
 */
import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign,
} from 'node:crypto';
import { eq } from 'drizzle-orm';
import { type Db, prepared, type Tx } from '../../../platform/db.ts';
import { EncryptionError, type Keyring, reencryptAll } from '../../../platform/encryption.ts';
import { registryAuthority } from '../table.ts';

/** The permissions in a token, in distribution's format. */
export interface Access {
  type: 'repository';
  name: string;
  actions: string[];
  /** Units: bytes. The gate of the host enforces it while clients push. */
  storage_limit?: number;
}

export interface Authority {
  certificate: string;
  /** Finds a user by name and secret. */
  secretMac(name: string, secret: string): Buffer;
  /** The password that API servers and hosts share for one purpose. */
  password(purpose: string): string;
  sign(token: { service: string; subject: string; access: Access[]; from: Date; until: Date }): Promise<string>;
}

export const issuer = 'cloudyard';
const onlyRow = 1;
/** Of the ciphertext of the keys. */
const authorityContext = 'registry_authority';

interface Keys {
  /** PKCS #8, base64. */
  signing: string;
  certificate: string;
  /** Base64. */
  mac: string;
}

/** Reads the keys; the first caller creates them. */
export async function openAuthority(db: Db, keyring: Keyring): Promise<Authority> {
  const read = async () => (await db.select().from(registryAuthority).where(eq(registryAuthority.id, onlyRow)))[0];
  let row = await read();
  if (!row) {
    const keys = encryptNewKeys(keyring);
    await db.insert(registryAuthority).values({ id: onlyRow, keys }).onConflictDoNothing();
    row = (await read())!;
  }
  return authorityOf(JSON.parse(keyring.decrypt(row.keys, authorityContext).toString()) as Keys);
}

/**
 * Whether the keyring decrypts the keys, for `secrets rotate-key` and `doctor`. `exist`: an API server has created them.
 * `problem`: why they do not decrypt.
 */
export async function checkAuthority(
  { $client }: Pick<Tx, '$client'>,
  keyring: Keyring,
): Promise<{ exist: boolean; problem: EncryptionError | null }> {
  const { rows } = await $client.query<{ keys: Buffer }>('select keys from registry_authority');
  if (!rows[0]) return { exist: false, problem: null };
  try {
    keyring.decrypt(rows[0].keys, authorityContext);
    return { exist: true, problem: null };
  } catch (error) {
    if (error instanceof EncryptionError) return { exist: true, problem: error };
    throw error;
  }
}

/** Replaces keys that do not decrypt. Users of registries need new secrets, and running processes keep the old keys. */
export async function replaceAuthority(tx: Tx, keyring: Keyring): Promise<void> {
  await tx.update(registryAuthority).set({ keys: encryptNewKeys(keyring) });
}

/** See `reencryptAll`. */
export function reencryptAuthority(db: Db, keyring: Keyring): Promise<number> {
  return reencryptAll(keyring, () => authorityContext, {
    async after(id) {
      const rows = id === null ? await db.select().from(registryAuthority) : [];
      return rows.map(({ keys }) => ({ id: authorityContext, ciphertext: keys }));
    },
    async replace(_id, old, keys) {
      await db.update(registryAuthority).set({ keys }).where(eq(registryAuthority.keys, old));
    },
  });
}

/** Announces an API server. It replaces the current server if `first`, or if the announcements of that server have stopped. */
export const announceApi = prepared<object, [url: string, first: boolean, silenceSeconds: number], Db>(
  'registry_api_announce',
  `update registry_authority set api_url = $1, api_seen_at = now()
   where id = ${onlyRow} and ($2 or api_url is null or api_url = $1 or api_seen_at < now() - $3 * interval '1 second')`,
);

/** The URL of the API that API servers last announced; null: none did. */
export async function announcedApi(db: Db): Promise<string | null> {
  const [row] = await db.select({ apiUrl: registryAuthority.apiUrl }).from(registryAuthority);
  return row?.apiUrl ?? null;
}

function authorityOf({ signing, certificate, mac }: Keys): Authority {
  const key = createPrivateKey({ key: Buffer.from(signing, 'base64'), format: 'der', type: 'pkcs8' });
  const kid = libtrustId(createPublicKey(key));
  const hmac = (text: string) => createHmac('sha256', Buffer.from(mac, 'base64')).update(text).digest();
  return {
    certificate,
    secretMac: (name, secret) => hmac(`user\0${name}\0${secret}`),
    password: (purpose) => hmac(`password\0${purpose}`).toString('base64url'),
    async sign({ service, subject, access, from, until }) {
      // Loaded for the first token, so that a server without registries does not need it.
      const { SignJWT } = await import('jose');
      return new SignJWT({ access })
        .setProtectedHeader({ alg: 'ES256', kid, typ: 'JWT' })
        .setIssuer(issuer)
        .setAudience(service)
        .setSubject(subject)
        .setIssuedAt(from)
        .setNotBefore(from)
        .setExpirationTime(until)
        .setJti(randomUUID())
        .sign(key);
    },
  };
}

function encryptNewKeys(keyring: Keyring): Buffer {
  return keyring.encrypt(Buffer.from(JSON.stringify(newKeys())), authorityContext);
}

function newKeys(): Keys {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    signing: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
    certificate: selfSigned(privateKey, publicKey),
    mac: randomBytes(32).toString('base64'),
  };
}

/** The first 240 bits of the key's SHA-256, in base32, four letters at a time. */
function libtrustId(publicKey: KeyObject): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const digest = createHash('sha256')
    .update(publicKey.export({ format: 'der', type: 'spki' }))
    .digest();
  const bits = [...digest.subarray(0, 30)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const text = (bits.match(/.{5}/g) ?? []).map((five) => letters[Number.parseInt(five, 2)]).join('');
  return (text.match(/.{4}/g) ?? []).join(':');
}

/** A certificate that only contains the key. */
function selfSigned(privateKey: KeyObject, publicKey: KeyObject): string {
  const algorithm = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));
  const commonName = der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from('Cloudyard registries')));
  const name = der(0x30, der(0x31, commonName));
  const validity = der(0x30, ...['20200101000000Z', '99991231235959Z'].map((time) => der(0x18, Buffer.from(time))));
  const serial = der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const version = der(0xa0, der(0x02, Buffer.from([2])));
  const spki = publicKey.export({ format: 'der', type: 'spki' });
  const signed = der(0x30, version, serial, algorithm, name, validity, name, spki);
  const signature = der(0x03, Buffer.from([0]), sign('sha256', signed, privateKey));
  const text = der(0x30, signed, algorithm, signature).toString('base64').replaceAll(/.{64}/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${text.trim()}\n-----END CERTIFICATE-----\n`;
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}
