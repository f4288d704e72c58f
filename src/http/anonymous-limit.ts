/**
 * Limits the requests without a valid credential of each address. Requests with a credential that this server has accepted
 * before are not limited, so an attacker does not lock out the clients that share its address.
 *
 * Invariant: once the limit is reached, a request that is refused costs no query.
 */
import { ClientError, tooManyRequests } from '../errors/catalogue.ts';
import { sourceOf } from '../platform/network-address.ts';

export interface AnonymousLimits {
  /** Requests a minute of one address (IPv6: of one /64 network). */
  perMinute: number;
  /** The same for loopback, the address of local proxies and CI. */
  perMinuteLoopback: number;
}

export const defaultAnonymousLimits: AnonymousLimits = { perMinute: 600, perMinuteLoopback: 6000 };

/** Counted are failed authentications, requests to public operations that cost more than a refusal, and new sessions. */
type AnonymousKind = 'failed' | 'public' | 'signIn';

export type AnonymousLimit = ReturnType<typeof createAnonymousLimit>;

declare module 'fastify' {
  interface FastifyInstance {
    anonymousLimit: AnonymousLimit;
  }
  interface FastifyContextConfig {
    /** Counts the requests of each address, for public operations that are not free. */
    isCounted?: boolean;
  }
}

const windowMs = 60_000;
/** Further addresses within a minute are not counted. */
const maxAddresses = 100_000;

export function createAnonymousLimit(limits = defaultAnonymousLimits) {
  const counts = new Map<string, number>();
  let endsAt = 0;

  const limitOf = (source: string) =>
    source.startsWith('127.') || source === '0:0:0:0::/64' ? limits.perMinuteLoopback : limits.perMinute;

  const count = (kind: AnonymousKind, source: string): number => {
    const now = performance.now();
    if (now >= endsAt) {
      counts.clear();
      endsAt = now + windowMs;
    }
    return counts.get(kind + source) ?? 0;
  };

  return {
    /** Whether the address has reached its limit in this minute. */
    isReached(kind: AnonymousKind, address: string): boolean {
      if (counts.size === 0) return false;
      const source = sourceOf(address);
      return count(kind, source) >= limitOf(source);
    },

    add(kind: AnonymousKind, address: string): void {
      const source = sourceOf(address);
      const before = count(kind, source);
      if (before > 0 || counts.size < maxAddresses) counts.set(kind + source, before + 1);
    },

    /** 429 until the minute is over. */
    refusal(): ClientError {
      const seconds = Math.max(1, Math.ceil((endsAt - performance.now()) / 1000));
      const message = `too many requests without a valid credential from your address; try again in ${seconds} s`;
      return tooManyRequests(message, seconds);
    },
  };
}
