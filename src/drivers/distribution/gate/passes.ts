/** Bearer tokens of the token server, as far as the gate reads them: whether one may push, and up to which limit. */
import { X509Certificate } from 'node:crypto';
import { jwtVerify } from 'jose';

export interface Pass {
  mayPush: boolean;
  /** Bytes that the registry may hold. */
  limit: number;
  /** When the token server signed that, seconds. */
  issuedAt: number;
}

export interface PassesOptions {
  /** PEM; holds the key that tokens are signed with. */
  certificate: string;
  issuer: string;
  service: string;
}

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

/** As distribution allows beyond `exp` and before `nbf`, seconds. */
const leeway = 60;
const maxRemembered = 10_000;

export function createPasses({ certificate, issuer, service }: PassesOptions) {
  const key = new X509Certificate(certificate).publicKey;
  const remembered = new Map<string, Verified>();

  const verify = async (token: string): Promise<Verified | null> => {
    const known = remembered.get(token);
    if (known) return known;
    try {
      const { payload } = await jwtVerify(token, key, {
        ...{ algorithms: ['ES256'], issuer, audience: service, clockTolerance: leeway },
        requiredClaims: ['iat', 'exp', 'access'],
      });
      const access = (Array.isArray(payload['access']) ? payload['access'] : []) as Access[];
      const verified = { issuedAt: payload.iat!, until: payload.exp! + leeway, access };
      if (remembered.size >= maxRemembered) remembered.clear();
      remembered.set(token, verified);
      return verified;
    } catch {
      return null;
    }
  };

  /** Null for a token that distribution would not accept at all. */
  return async (authorization: string | undefined, name: string): Promise<Pass | null> => {
    const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    const verified = token ? await verify(token) : null;
    if (!verified || verified.until <= Date.now() / 1000) return null;
    const { issuedAt, access } = verified;
    const found = access.find((each) => each.name === name && each.actions.includes('push'));
    if (!found) return { mayPush: false, limit: 0, issuedAt };
    return found.storage_limit === undefined ? null : { mayPush: true, limit: found.storage_limit, issuedAt };
  };
}
