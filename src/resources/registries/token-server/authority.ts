/**
 * The keys of the token server, shared by all API servers: one row, encrypted with the key file. It signs what clients
 * show to the region's host, recognizes secrets of users, and agrees on passwords with the hosts.
 *
 * Tokens are signed with ES256, and name their key by its libtrust fingerprint, as distribution 2.8 looks it up among
 * the certificates that it was given. It reads the key from the certificate and nothing else, so a self-signed one does.
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
import { prepared } from '../../../platform/db.ts';
import type { Db } from '../../../platform/db.ts';
import { reencryptAll } from '../../../platform/encryption.ts';
import type { Keyring } from '../../../platform/encryption.ts';
import { registryAuthority } from '../table.ts';

/** What a token lets its bearer do, in distribution's words. */
export interface Access {
  type: 'repository';
  name: string;
  actions: string[];
  /** Bytes that the registry may hold, for the gate of its host, which counts what is pushed. */
  storage_limit?: number;
}

export interface Authority {
  certificate: string;
  /** Finds a user by name and secret. */
  secretMac(name: string, secret: string): Buffer;
  /** A password that this server and a host both know, for one purpose. */
  password(purpose: string): string;
  sign(token: { service: string; subject: string; access: Access[]; from: Date; until: Date }): Promise<string>;
}

export const issuer = 'cloudyard';
const onlyRow = 1;
const context = 'registry_authority';

interface Keys {
  /** PKCS #8, base64. */
  signing: string;
  certificate: string;
  /** Base64. */
  mac: string;
}

/** The keys, made by whoever first needs them. */
export async function openAuthority(db: Db, keyring: Keyring): Promise<Authority> {
  const read = async () => (await db.select().from(registryAuthority).where(eq(registryAuthority.id, onlyRow)))[0];
  let row = await read();
  if (!row) {
    const keys = keyring.encrypt(Buffer.from(JSON.stringify(newKeys())), context);
    await db.insert(registryAuthority).values({ id: onlyRow, keys }).onConflictDoNothing();
    row = (await read())!;
  }
  return authorityOf(JSON.parse(keyring.decrypt(row.keys, context).toString()) as Keys);
}

/** See `reencryptAll`. */
export function reencryptAuthority(db: Db, keyring: Keyring): Promise<number> {
  return reencryptAll(keyring, () => context, {
    async after(id) {
      const rows = id === null ? await db.select().from(registryAuthority) : [];
      return rows.map(({ keys }) => ({ id: context, ciphertext: keys }));
    },
    async replace(_id, old, keys) {
      await db.update(registryAuthority).set({ keys }).where(eq(registryAuthority.keys, old));
    },
  });
}

const announce = prepared(
  'registry_api_announce',
  `update registry_authority set api_url = $1, api_seen_at = now()
   where id = ${onlyRow} and ($2 or api_url is null or api_url = $1 or api_seen_at < now() - $3 * interval '1 second')`,
);

/** Notes that an API server is there; it is the one that clients are sent to when `first`, or when the other is silent. */
export async function announceApi(db: Db, url: string, first: boolean, silenceSeconds: number): Promise<void> {
  await announce(db, url, first, silenceSeconds);
}

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
      // Loaded by the first token: who has no registries does without.
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

/** A certificate that does no more than carry the key. */
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
