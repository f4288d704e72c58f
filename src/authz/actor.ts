/** Who asks: what a token says, once it has been checked. */
export interface Actor {
  /** The token's number; `user_id` of the tasks and resources it makes. */
  tokenId: number;
  clientId: number;
  /** The client's share in what clients compete for; 1 where not given. */
  weight?: number;
  role: Role;
  /** The projects that the token is limited to; null: all of the client's. */
  projectIds: number[] | null;
  /** Whether the client is the one that runs this Cloudyard. */
  operator: boolean;
}

/** `reader` sees, `member` changes too, `admin` may also manage projects; an admin of the operator, every client. */
export const roles = ['reader', 'member', 'admin'] as const;
export type Role = (typeof roles)[number];

export function atLeast(actor: Actor, role: Role): boolean {
  return roles.indexOf(actor.role) >= roles.indexOf(role);
}

/** A request that was let in, as far as rules and rows need to know of it. */
export interface RequestContext {
  actor: Actor;
  requestId: string;
  /** Present when the client sent `Idempotency-Key`: the transaction that does the work claims it. */
  idempotency?: IdempotencyClaim;
  /** What the audit log tells of the request; absent where no request stands behind a change. */
  request?: RequestFacts;
  /** The request's share of this server; absent where no request stands behind the call. */
  slot?: RequestSlot;
}

export interface RequestSlot {
  /**
   * Releases the slot while `wait` only waits for something that happens elsewhere. `gone` aborts when the client
   * disconnects. @throws ClientError 429 when the client has too many open waits
   */
  whileWaiting<T>(wait: (gone: AbortSignal) => Promise<T>): Promise<T>;
}

/** Runs `wait` without the slot of the request, where there is one. */
export function whileWaiting<T>(
  { slot }: Pick<RequestContext, 'slot'>,
  wait: (gone?: AbortSignal) => Promise<T>,
): Promise<T> {
  return slot ? slot.whileWaiting(wait) : wait();
}

/** What was asked for, from where, and about whose things. */
export interface RequestFacts {
  operation: string;
  origin: { address: string; method: string; path: string; forwarded_for?: string; user_agent?: string };
  /** Absent until the path is resolved. */
  scope?: ClientScope & Partial<Scope>;
}

/** Where a request acts when its path names neither a project nor a region. */
export interface ClientScope {
  clientId: number;
}

/** Where a request acts when its path names a project. */
export interface ProjectScope extends ClientScope {
  projectId: number;
}

/** Where a request acts when its path names a project and a region. */
export interface Scope extends ProjectScope {
  regionId: number;
  regionName: string;
}

export interface IdempotencyClaim {
  key: string;
  /** Hex SHA-256 of method, path and body. */
  fingerprint: string;
  /** Set once the claim stands in a committed transaction. */
  claimed: boolean;
}
