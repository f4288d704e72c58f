/** The settings of sign-in with OpenID Connect. */
import { isIP } from 'node:net';
import type { CoreSettingName } from './setting-meanings.ts';
import type { SettingReader } from './setting-reader.ts';

export type OidcSettings = NonNullable<ReturnType<typeof readOidcSettings>>;

const required = ['CLOUDYARD_OIDC_CLIENT_ID', 'CLOUDYARD_OIDC_CLIENT_SECRET', 'CLOUDYARD_OIDC_GROUPS_FILE'] as const;

/** Null without CLOUDYARD_OIDC_ISSUER. */
export function readOidcSettings(reader: SettingReader<CoreSettingName>, publicUrl: string | undefined) {
  const { text, path, integer, reject } = reader;
  const issuer = text('CLOUDYARD_OIDC_ISSUER');
  const seconds = integer('CLOUDYARD_OIDC_SECONDS', 8 * 3600, 60, 7 * 86_400);
  if (issuer === undefined) return null;
  if (!isSecure(issuer)) reject('CLOUDYARD_OIDC_ISSUER must be an https URL');
  for (const name of required) if (!text(name)) reject(`CLOUDYARD_OIDC_ISSUER requires ${name}`);
  if (publicUrl === undefined) reject('CLOUDYARD_OIDC_ISSUER requires CLOUDYARD_PUBLIC_URL');
  return {
    /** URL of the provider. */
    issuer,
    clientId: text('CLOUDYARD_OIDC_CLIENT_ID') ?? '',
    clientSecret: text('CLOUDYARD_OIDC_CLIENT_SECRET') ?? '',
    /** YAML file: groups, and what their members may do. Absolute. */
    groupsFile: path('CLOUDYARD_OIDC_GROUPS_FILE') ?? '',
    /** The claim with the groups of a person. */
    groupsClaim: text('CLOUDYARD_OIDC_GROUPS_CLAIM') ?? 'groups',
    scopes: text('CLOUDYARD_OIDC_SCOPES') ?? 'openid profile email',
    /** How long a sign-in lasts. */
    seconds,
  };
}

/** Plain HTTP never leaves the host. */
function isSecure(issuer: string): boolean {
  if (!URL.canParse(issuer)) return false;
  const { protocol, hostname } = new URL(issuer);
  return protocol === 'https:' || (protocol === 'http:' && isIP(hostname) === 4 && hostname.startsWith('127.'));
}
