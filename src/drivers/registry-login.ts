/** Verifies that a registry accepts a login. API servers call it directly, because a user waits for the result. */

/** A registry, as `docker login` accepts it (resources/pull-secrets/registry.ts). */
export interface RegistryAddress {
  /** `host` or `host:port` of the registry API. */
  authority: string;
}

export interface Credentials {
  login: string;
  password: string;
}

const outcomes = ['accepted', 'refused', 'not_asked', 'no_registry', 'unreachable', 'not_allowed'] as const;
export type Outcome = (typeof outcomes)[number];

/** `message` is for the customer and never contains text from the registry. */
export interface Verdict {
  outcome: Outcome;
  message: string;
}

/** Never rejects: a failure is a verdict, too. */
export type VerifyLogin = (registry: RegistryAddress, credentials: Credentials) => Promise<Verdict>;
