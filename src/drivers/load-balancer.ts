import type { Driver } from './driver.ts';

export type ListenerProtocol = 'HTTP' | 'HTTPS' | 'PROMETHEUS' | 'TCP' | 'TERMINATED_HTTPS' | 'UDP';
export type PoolProtocol = 'HTTP' | 'HTTPS' | 'PROXY' | 'PROXYV2' | 'TCP' | 'UDP';
export type LbAlgorithm = 'LEAST_CONNECTIONS' | 'ROUND_ROBIN' | 'SOURCE_IP';
export type MonitorType = 'HTTP' | 'HTTPS' | 'PING' | 'TCP' | 'TLS-HELLO' | 'UDP-CONNECT';

/** Everything that a host must know of one load balancer. Times are milliseconds. */
export interface DesiredLoadBalancer {
  id: string;
  /** Whose it is: the load balancers of one tenant share what a host gives to each. */
  tenant: string;
  /** Says where its members may be (platform/member-networks.ts). */
  regionId: number;
  /** The address that its listeners bind. */
  address: string;
  enabled: boolean;
  listeners: DesiredListener[];
  pools: DesiredPool[];
}

export interface DesiredListener {
  id: string;
  protocol: ListenerProtocol;
  port: number;
  enabled: boolean;
  /** Open connections at once; null: no limit. */
  connectionLimit: number | null;
  /** Networks that may connect; null: all; empty: none. */
  allowedNetworks: string[] | null;
  insertXForwarded: boolean;
  /** For TERMINATED_HTTPS: served where no other name matches. */
  certificate: DesiredCertificate | null;
  /** By server name. */
  sniCertificates: DesiredCertificate[];
  /** HTTP basic authentication; empty: none asked. Passwords are crypt(3) hashes. */
  users: { name: string; encryptedPassword: string }[];
  timeoutClientData: number | null;
  timeoutMemberConnect: number | null;
  timeoutMemberData: number | null;
  /** Where its traffic goes; null: nowhere (503, or a closed connection). */
  defaultPoolId: string | null;
}

export interface DesiredPool {
  id: string;
  protocol: PoolProtocol;
  algorithm: LbAlgorithm;
  enabled: boolean;
  members: DesiredMember[];
  monitor: DesiredMonitor | null;
  persistence: DesiredPersistence | null;
  /** For HTTPS pools: PEM bundles that the members' certificates are verified against. */
  caBundle: string | null;
  revocationList: string | null;
  /** What the load balancer shows to members that ask for a client certificate. */
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
  /** `200`, `200,204` or `200-299`. */
  expectedCodes: string | null;
}

export interface DesiredPersistence {
  type: 'SOURCE_IP' | 'HTTP_COOKIE' | 'APP_COOKIE';
  /** For APP_COOKIE: the application's own cookie. */
  cookieName: string | null;
  /** For SOURCE_IP: seconds without traffic until a client is forgotten. */
  timeoutSeconds: number | null;
  /** For SOURCE_IP: netmask of clients that count as one. */
  granularity: string | null;
}

export interface DesiredCertificate {
  /** The id of its secret: the same id is the same text. */
  id: string;
  /** Certificate, chain and private key, PEM, in that order. */
  pem: string;
}

export interface ObservedLoadBalancer {
  /** What this call changed, in words for the log; empty when everything was as desired. */
  changed: string[];
  /** Whether the proxy had to reload its configuration for it. */
  reloaded: boolean;
}

export type MemberHealth = 'UP' | 'DOWN' | 'DRAIN' | 'MAINT' | 'UNCHECKED';

export interface ListenerCounters {
  activeConnections: number;
  totalConnections: number;
  bytesIn: number;
  bytesOut: number;
  requestErrors: number;
}

/** What the proxy itself sees of one load balancer, now. */
export interface LoadBalancerReading {
  id: string;
  /** By member id; a member that drains after its removal is not here. */
  members: Map<string, MemberHealth>;
  /** By listener id; a listener that does not listen is not here. */
  listeners: Map<string, ListenerCounters>;
}

/**
 * `apply` leaves out members that may not be where they are, serves all others, and then rejects permanently, naming them. A
 * member that was left out already is DOWN and keeps no other change from being done.
 */
export interface LoadBalancerDriver extends Driver<DesiredLoadBalancer, ObservedLoadBalancer> {
  /** All load balancers at once, cheap enough for every second. @throws DriverError */
  read(): Promise<LoadBalancerReading[]>;
  /**
   * Asks again where members may be, of all load balancers: addresses come and go on a host. Members that may not be there
   * any more get no traffic and no checks, and are DOWN; others come back. Never rejects.
   */
  recheckMembers(): Promise<void>;
  /** Since the start of this process, for metrics. */
  counters(): { reloads: number; runtimeChanges: number };
}
