import type { Driver } from './driver.ts';

// The grammar of distribution, as regular expressions without anchors.
const repositoryPart = '[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*';
export const repositoryGrammar = `${repositoryPart}(/${repositoryPart})*`;
export const tagGrammar = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}';
export const digestGrammar = 'sha256:[0-9a-f]{64}';

const digest = new RegExp(`^${digestGrammar}$`);

/** Whether it is a SHA-256 digest, the only kind that is stored. */
export function isDigest(text: unknown): text is string {
  return typeof text === 'string' && digest.test(text);
}

/** Settings of the registry program: the token server, and the receiver of events. */
export interface RegistryHosting {
  /** URL of the token server, as clients reach it. */
  realm: string;
  /** The audience of tokens for this host. */
  service: string;
  issuer: string;
  /** PEM; contains the public key of the token server. */
  certificate: string;
  /** Signs the state of uploads in their URLs; must not change while an upload is in progress. */
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

/** The content of a registry on the host. */
export interface RegistryContents {
  prefix: string;
  repositories: {
    name: string;
    /** `size`: bytes of the manifest and everything it refers to, with the sizes of the images of an index. */
    manifests: { digest: string; size: number; pushedAt: Date }[];
    tags: { name: string; digest: string; pushedAt: Date }[];
  }[];
  /** The size in bytes of every blob that the registry refers to, by digest. */
  blobs: Map<string, number>;
}

/** Blocks pushes to a repository until `release` is called or `until` has passed. */
interface Hold {
  until: Date;
  release(): Promise<void>;
}

/** Requests a hold on a repository; null: a push may be in progress. */
export type RequestHold = (prefix: string, repository: string) => Promise<Hold | null>;

/**
 * Serves images on one host. A registry is a prefix of repository names (`<prefix>/<repository>`). It needs no creation: a
 * token for the prefix is enough. So it has no `apply`; the other members are as in driver.ts, with prefixes as ids.
 */
export interface RegistryDriver extends Omit<Driver<{ id: string }, never>, 'apply'> {
  /** `host:port`, which precedes the prefix in the name of an image. */
  readonly address: string;
  /** Applies these settings, if they differ from the current ones. @throws DriverError */
  configure(hosting: RegistryHosting): Promise<void>;
  /** Removes a part of a registry; resolves also if it does not exist. @throws DriverError */
  removeContents(removal: RegistryRemoval, signal: AbortSignal): Promise<void>;
  /** Bytes of abandoned uploads, by prefix. @throws DriverError */
  idleUploads(): Promise<Map<string, number>>;
  /**
   * Scans the storage, deletes blobs that no manifest refers to, and returns the remaining contents. Null: the driver is
   * simulated and has no storage. @throws DriverError
   */
  collect(requestHold: RequestHold, signal: AbortSignal): Promise<RegistryContents[] | null>;
}
