/** Whether a registry takes a login. Asked by API servers, because a person waits for the answer. */

/** A registry as `docker login` understands one (resources/pull-secrets/registry.ts). */
export interface RegistryAddress {
  /** Host or host:port that speaks the registry's protocol. */
  authority: string;
}

export interface Credentials {
  login: string;
  password: string;
}

export const outcomes = ['accepted', 'refused', 'not_asked', 'no_registry', 'unreachable', 'not_allowed'] as const;
export type Outcome = (typeof outcomes)[number];

/** `message` is a sentence for the customer that says what happened, in our words alone. */
export interface Verdict {
  outcome: Outcome;
  message: string;
}

/** Never throws: whatever happens is the verdict. */
export type VerifyLogin = (registry: RegistryAddress, credentials: Credentials) => Promise<Verdict>;
