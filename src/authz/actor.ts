/** The authenticated caller, from the claims of its token. */
export interface Actor {
  /** ID of the token; `user_id` of the tasks and resources that it creates. */
  tokenId: number;
  /** ID of the session, for a request with a session cookie. */
  sessionId?: number;
  clientId: number;
  /** The client's weight where clients share capacity. Default: 1. */
  weight?: number;
  role: Role;
  /** The projects that the token is limited to; null: all projects of the client. */
  projectIds: number[] | null;
  /** Whether the client operates this Cloudyard. */
  operator: boolean;
  /** When the token expires. Absent or null: never. */
  expiresAt?: Date | null;
}

/** The properties of a token and of its client that every request needs, as stores read them. */
export interface TokenRights {
  client_id: number;
  operator: boolean;
  weight: number;
  role: Role;
  project_ids: number[] | null;
}

export function actorOf(tokenId: number, rights: TokenRights): Actor {
  const { client_id: clientId, operator, weight, role, project_ids: projectIds } = rights;
  return { tokenId, clientId, operator, weight, role, projectIds };
}

/** `reader` reads, `member` also writes, `admin` also manages projects. An admin of the operator also manages all clients. */
export const roles = ['reader', 'member', 'admin'] as const;
export type Role = (typeof roles)[number];

/** Each role includes those before it in `roles`. */
export function atLeast(actor: Actor, role: Role): boolean {
  return roles.indexOf(actor.role) >= roles.indexOf(role);
}

/** An authenticated request, as services and stores see it. */
export interface RequestContext {
  actor: Actor;
  requestId: string;
  /** Present when the client sent `Idempotency-Key`: the transaction that does the work claims it. */
  idempotency?: IdempotencyClaim;
  /** Recorded in the audit log. Absent for reads without an entry there, and if no request caused the change. */
  request?: RequestFacts;
  /** What authenticated the request, for a stream that outlives it. Absent if no request caused the call. */
  credential?: { text: string; check(): Actor | null | Promise<Actor | null> };
  /** The request's slot on this server. Absent if no request caused the call. */
  slot?: RequestSlot;
  /** Set when the request was answered because its time is over: it must change nothing from then on. */
  isOver?: boolean;
  /** Set before its first commit is sent: the request may take effect. */
  mayTakeEffect?: boolean;
}

/** Guards the transactions of a request (platform/db.ts): none of them commits after the request was answered. */
export function guardOf(context: RequestContext): (isCommit: boolean) => void {
  return (isCommit) => {
    if (context.isOver) throw new Error('the time of the request is over');
    if (isCommit) context.mayTakeEffect = true;
  };
}

export interface RequestSlot {
  /**
   * Releases the slot while `wait` waits for work that is done elsewhere. `gone` aborts when the client disconnects.
   * @throws ClientError 429 if the client has too many open waits
   */
  whileWaiting<T>(wait: (gone: AbortSignal) => Promise<T>): Promise<T>;
  /** Releases the slot before the response ends. */
  end(): void;
  /** Keeps the slot after the response, until `work` settles. */
  keepUntil(work: Promise<unknown>): void;
  /** Called for a large response, by which the cost of the client's next reads is determined. */
  noteLarge(): void;
}

/** Runs `wait` without holding the slot of the request, if it has one. */
export function whileWaiting<T>(
  { slot }: Pick<RequestContext, 'slot'>,
  wait: (gone?: AbortSignal) => Promise<T>,
): Promise<T> {
  return slot ? slot.whileWaiting(wait) : wait();
}

/** The operation, the origin and the scope of a request. */
export interface RequestFacts {
  operation: string;
  origin: {
    address: string;
    method: string;
    path: string;
    /** As reported by the proxy or by the client itself; not verified. */
    forwarded_for?: string;
    user_agent?: string;
  };
  /** Absent until the path is resolved. */
  scope?: ClientScope & Partial<Scope>;
}

/** The scope of a request whose path names neither a project nor a region. */
export interface ClientScope {
  clientId: number;
}

/** The scope of a request whose path names a project. */
export interface ProjectScope extends ClientScope {
  projectId: number;
}

/** The scope of a request whose path names a project and a region. */
export interface Scope extends ProjectScope {
  regionId: number;
  regionName: string;
}

interface IdempotencyClaim {
  key: string;
  /** Hex SHA-256 of method, path and body. */
  fingerprint: string;
  /** Set once a committed transaction contains the claim. */
  claimed: boolean;
}
