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

/** `not_asked`: the registry needs no login; `not_allowed`: this machine must not connect to it. */
export type Outcome = 'accepted' | 'refused' | 'not_asked' | 'no_registry' | 'unreachable' | 'not_allowed';

/** `message` is for the customer and never contains text from the registry. */
export interface Verdict {
  outcome: Outcome;
  message: string;
}

/** Never rejects: a failure is a verdict, too. */
export type VerifyLogin = (registry: RegistryAddress, credentials: Credentials) => Promise<Verdict>;
