import type { Driver } from './driver.ts';

export type ListenerProtocol = 'HTTP' | 'HTTPS' | 'PROMETHEUS' | 'TCP' | 'TERMINATED_HTTPS' | 'UDP';
export type PoolProtocol = 'HTTP' | 'HTTPS' | 'PROXY' | 'PROXYV2' | 'TCP' | 'UDP';
export type LbAlgorithm = 'LEAST_CONNECTIONS' | 'ROUND_ROBIN' | 'SOURCE_IP';
type MonitorType = 'HTTP' | 'HTTPS' | 'PING' | 'TCP' | 'TLS-HELLO' | 'UDP-CONNECT';

export type L7Action = 'REDIRECT_PREFIX' | 'REDIRECT_TO_POOL' | 'REDIRECT_TO_URL' | 'REJECT';
export type L7CompareType = 'CONTAINS' | 'ENDS_WITH' | 'EQUAL_TO' | 'REGEX' | 'STARTS_WITH';
export type L7RuleType =
  | 'COOKIE'
  | 'FILE_TYPE'
  | 'HEADER'
  | 'HOST_NAME'
  | 'PATH'
  | 'SSL_CONN_HAS_CERT'
  | 'SSL_DN_FIELD'
  | 'SSL_VERIFY_RESULT';

/** Everything that a host needs to serve one load balancer. Units: times are milliseconds. */
export interface DesiredLoadBalancer {
  id: string;
  /** The owner. Load balancers of one tenant share the limits of the host. */
  tenant: string;
  /** Decides where its members may be (platform/member-networks.ts). */
  regionId: number;
  /** The address that its listeners listen on. */
  address: string;
  /** Further addresses that its listeners listen on: the IPv6 address of one with both protocols. Default: none. */
  additionalAddresses?: string[];
  enabled: boolean;
  listeners: DesiredListener[];
  pools: DesiredPool[];
}

/** All addresses that its listeners listen on. */
export function addressesOf({
  address,
  additionalAddresses = [],
}: Pick<DesiredLoadBalancer, 'address' | 'additionalAddresses'>): string[] {
  return [address, ...additionalAddresses];
}

export interface DesiredListener {
  id: string;
  protocol: ListenerProtocol;
  port: number;
  enabled: boolean;
  /** The maximum of open connections; 0: none are accepted. */
  connectionLimit: number;
  /** Networks that may connect; null: all; empty: none. */
  allowedNetworks: string[] | null;
  insertXForwarded: boolean;
  /** For TERMINATED_HTTPS and PROMETHEUS: the certificate for names that no other certificate matches. */
  certificate: DesiredCertificate | null;
  /** Chosen by server name (SNI); requires `certificate`. */
  sniCertificates: DesiredCertificate[];
  /** For HTTP basic authentication; empty: no authentication. Passwords are crypt(3) hashes. */
  users: { name: string; encryptedPassword: string }[];
  timeoutClientData: number | null;
  timeoutMemberConnect: number | null;
  timeoutMemberData: number | null;
  /** The pool that gets its traffic; null: it responds with 503 or closes the connection. */
  defaultPoolId: string | null;
  /** In the order of their positions. */
  l7Policies: DesiredL7Policy[];
}

/**
 * A request that matches all rules of a policy gets its action; a policy without rules matches nothing, as in Octavia
 * (octavia/common/jinja/haproxy/combined_listeners/templates/macros.j2 renders only policies with rules). Octavia
 * evaluates rejections first, then redirects to URLs and prefixes, then redirects to pools, each by position.
 */
export interface DesiredL7Policy {
  id: string;
  action: L7Action;
  redirectUrl: string | null;
  /** Precedes the path and query of the request. */
  redirectPrefix: string | null;
  redirectPoolId: string | null;
  /** For redirects to a URL or prefix. */
  redirectHttpCode: number | null;
  rules: DesiredL7Rule[];
}

export interface DesiredL7Rule {
  id: string;
  type: L7RuleType;
  compareType: L7CompareType;
  /** The header, cookie or field of a distinguished name. */
  key: string | null;
  value: string;
  invert: boolean;
}

export interface DesiredPool {
  id: string;
  protocol: PoolProtocol;
  algorithm: LbAlgorithm;
  enabled: boolean;
  members: DesiredMember[];
  monitor: DesiredMonitor | null;
  persistence: DesiredPersistence | null;
  /** For HTTPS pools: the PEM bundle that verifies the certificates of members; null: they are not verified. */
  caBundle: string | null;
  revocationList: string | null;
  /** The certificate for members that request a client certificate. */
  clientCertificate: DesiredCertificate | null;
  timeoutClientData: number | null;
  timeoutMemberConnect: number | null;
  timeoutMemberData: number | null;
}

export interface DesiredMember {
  id: string;
  address: string;
  port: number;
  /** 0 to 256; 0: no new connections. */
  weight: number;
  backup: boolean;
  enabled: boolean;
  monitorAddress: string | null;
  monitorPort: number | null;
}

export interface DesiredMonitor {
  type: MonitorType;
  enabled: boolean;
  delay: number;
  timeout: number;
  maxRetries: number;
  maxRetriesDown: number;
  httpMethod: string | null;
  httpVersion: '1.0' | '1.1' | null;
  urlPath: string | null;
  domainName: string | null;
  /** Statuses and ranges: `200`, `200,204` or `200,300-302`. */
  expectedCodes: string | null;
}

export interface DesiredPersistence {
  type: 'SOURCE_IP' | 'HTTP_COOKIE' | 'APP_COOKIE';
  /** For APP_COOKIE: the cookie of the application. For HTTP_COOKIE: the cookie that the proxy sets; null: the driver names it. */
  cookieName: string | null;
  /** For SOURCE_IP in UDP pools: seconds without traffic after which a client may get another member. */
  timeoutSeconds: number | null;
  /** For SOURCE_IP in UDP pools: the netmask (IPv6: the prefix length) of clients that share a member. */
  granularity: string | null;
}

export interface DesiredCertificate {
  /** The id of its secret. Secrets never change. */
  id: string;
  /** Certificate, chain and private key, PEM, in that order. */
  pem: string;
}

export type MemberHealth = 'UP' | 'DOWN' | 'DRAIN' | 'MAINT' | 'UNCHECKED';

export interface ListenerCounters {
  activeConnections: number;
  totalConnections: number;
  /** HTTP requests; 0 for TCP and UDP. */
  requests: number;
  bytesIn: number;
  bytesOut: number;
  /** Invalid requests, and those that the listener refused. */
  requestErrors: number;
  /** HTTP: responses 5xx, of members or because no member responded. TCP and UDP: connections without a member. */
  serverErrors: number;
}

export const zeroCounters: ListenerCounters = {
  activeConnections: 0,
  totalConnections: 0,
  requests: 0,
  bytesIn: 0,
  bytesOut: 0,
  requestErrors: 0,
  serverErrors: 0,
};

/** The current state of one load balancer, reported by the proxy. */
export interface LoadBalancerReading {
  id: string;
  /** By member id, without members that drain after their removal. */
  members: Map<string, MemberHealth>;
  /** By listener id, without listeners that do not listen. */
  listeners: Map<string, ListenerCounters>;
}

/** The hosts of a region that share sessions. */
export interface Peers {
  /** This host. */
  self: Peer;
  others: Peer[];
}

export interface Peer {
  name: string;
  /** Its address among the hosts. */
  address: string;
}

/** Where the hosts of a region exchange sessions. The protocol has no authentication: only the addresses of the hosts are accepted. */
export const PEER_PORT = 10_077;

/** What a host of a region with several hosts needs in addition. */
export interface BalancerAmongHosts {
  /** The hosts that share sessions. */
  setPeers(peers: Peers | null): Promise<void>;
  /** Stops keeping connections alive: the response to the next request closes one, and clients open new ones. */
  closeConnections(): Promise<void>;
  /** The number of requests (HTTP) and connections (TCP) in progress at these addresses. */
  activeRequests(addresses: ReadonlySet<string>): Promise<number>;
  /** Rejects if the proxy does not respond. */
  check(): Promise<void>;
}

/**
 * `apply` omits members that are not allowed where they are, serves all others, and then fails permanently with an error
 * that names the omitted members. Members that were omitted before are DOWN and do not fail other changes.
 */
export interface LoadBalancerDriver extends Driver<DesiredLoadBalancer, void> {
  /** Reads all load balancers; cheap enough for once a second. @throws DriverError */
  read(): Promise<LoadBalancerReading[]>;
  /**
   * Checks again where the members of all load balancers may be, because the addresses of a host change. Members that are
   * no longer allowed get no traffic and no checks and are DOWN; others are served again. It also restores members that
   * something else changed in the proxy. Never rejects.
   */
  recheckMembers(): Promise<void>;
  /** Counts since the start of this process, for metrics. */
  counters(): { reloads: number; runtimeChanges: number };
  /** Absent: the driver serves on one host only. */
  readonly amongHosts?: BalancerAmongHosts;
}
