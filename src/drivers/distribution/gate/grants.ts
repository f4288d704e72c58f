/** Verifies bearer tokens of the token server. The gate needs two claims: permission to push, and the storage limit. */
import { X509Certificate } from 'node:crypto';
import { jwtVerify } from 'jose';
import type { RegistryHosting } from '../../registry.ts';

/** The grant of a token for one repository. */
export interface Grant {
  mayPush: boolean;
  /** Bytes that the registry may contain. */
  limit: number;
  /** Seconds since the epoch. */
  issuedAt: number;
}

/** The token server. */
export type Issuer = Pick<RegistryHosting, 'certificate' | 'issuer' | 'service'>;

interface Access {
  name: string;
  actions: string[];
  storage_limit?: number;
}

interface Verified {
  issuedAt: number;
  until: number;
  access: Access[];
}

/** Seconds after `exp` and before `nbf`, as in distribution. */
export const leeway = 60;
const maxCached = 10_000;

/** Returns the check of an Authorization header for one repository (`prefix/name`). Verified tokens are cached. */
export function createGrants({ certificate, issuer, service }: Issuer) {
  const key = new X509Certificate(certificate).publicKey;
  const cache = new Map<string, Verified>();

  const verify = async (token: string): Promise<Verified | null> => {
    const known = cache.get(token);
    if (known) return known;
    try {
      const { payload } = await jwtVerify(token, key, {
        ...{ algorithms: ['ES256'], issuer, audience: service, clockTolerance: leeway },
        requiredClaims: ['iat', 'exp', 'access'],
      });
      const access = (Array.isArray(payload['access']) ? payload['access'] : []) as Access[];
      const verified = { issuedAt: payload.iat!, until: payload.exp! + leeway, access };
      if (cache.size >= maxCached) cache.clear();
      cache.set(token, verified);
      return verified;
    } catch {
      return null;
    }
  };

  /** Null for a token that distribution would reject. */
  return async (authorization: string | undefined, name: string): Promise<Grant | null> => {
    const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    const verified = token ? await verify(token) : null;
    if (!verified || verified.until <= Date.now() / 1000) return null;
    const { issuedAt, access } = verified;
    const found = access.find((each) => each.name === name && each.actions.includes('push'));
    if (!found) return { mayPush: false, limit: 0, issuedAt };
    return found.storage_limit === undefined ? null : { mayPush: true, limit: found.storage_limit, issuedAt };
  };
}
