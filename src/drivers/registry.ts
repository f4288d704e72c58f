import type { Driver } from './driver.ts';

/** What the program that serves images must know of Cloudyard: where clients log in, and whom it tells what happened. */
export interface RegistryHosting {
  /** The token server, as clients reach it. */
  realm: string;
  /** The audience of tokens that are for this host. */
  service: string;
  issuer: string;
  /** PEM; holds the public key that tokens are signed with. */
  certificate: string;
  /** Signs the state of uploads that stands in their URLs; must not change while one goes on. */
  httpSecret: string;
  events: { url: string; secret: string };
}

/** A repository, one manifest of it (`digest`) with its tags, or one tag (`digest` and `tag`). */
export interface RegistryRemoval {
  prefix: string;
  repository: string;
  digest: string | null;
  tag: string | null;
}

/** What a registry holds on the host. */
export interface RegistryContents {
  prefix: string;
  repositories: {
    name: string;
    /** `size`: the manifest and everything that it names, in bytes. */
    manifests: { digest: string; size: number; pushedAt: Date }[];
    tags: { name: string; digest: string; pushedAt: Date }[];
  }[];
  /** Every blob that it has a link to, in bytes, once. */
  blobs: Map<string, number>;
}

/** A repository to which nobody pushes until `release`, or until `until` at the latest. */
export interface Hold {
  until: Date;
  release(): Promise<void>;
}

/** Asks that nobody pushes for a moment; null: somebody may be in the middle of a push. */
export type AskForHold = (prefix: string, repository: string) => Promise<Hold | null>;

/**
 * The program that serves images on one host. A registry is a prefix of names there (`<prefix>/<repository>`), and needs
 * no making: it is there for who has a token for it. So there is no `apply`; the rest is as in driver.ts, by prefix.
 */
export interface RegistryDriver extends Omit<Driver<{ id: string }, never>, 'apply'> {
  /** `host:port`, what stands before a prefix in the name of an image. */
  readonly address: string;
  /** Serves with these settings from now on. Does nothing when it does so already. @throws DriverError */
  configure(hosting: RegistryHosting): Promise<void>;
  /** Removes a part of a registry; resolves as well when it is not there. @throws DriverError */
  removeContents(removal: RegistryRemoval, signal: AbortSignal): Promise<void>;
  /** Bytes in uploads that were begun and that nobody goes on with, by prefix. @throws DriverError */
  idleUploads(): Promise<Map<string, number>>;
  /**
   * Looks at all that is stored, frees what no manifest needs any more, and tells what is left. Null when it only
   * pretends, and there is nothing to look at. @throws DriverError
   */
  collect(ask: AskForHold, signal: AbortSignal): Promise<RegistryContents[] | null>;
}
