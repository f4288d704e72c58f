import type { Driver } from './driver.ts';

export type ListenerProtocol = 'HTTP' | 'HTTPS' | 'PROMETHEUS' | 'TCP' | 'TERMINATED_HTTPS' | 'UDP';
export type PoolProtocol = 'HTTP' | 'HTTPS' | 'PROXY' | 'PROXYV2' | 'TCP' | 'UDP';
export type LbAlgorithm = 'LEAST_CONNECTIONS' | 'ROUND_ROBIN' | 'SOURCE_IP';
export type MonitorType = 'HTTP' | 'HTTPS' | 'PING' | 'TCP' | 'TLS-HELLO' | 'UDP-CONNECT';

/** The desired state of one load balancer. Units: milliseconds, unless a name says otherwise. */
export interface DesiredLoadBalancer {
  id: string;
  /** The load balancers of one tenant share the tenant's part of the host's capacity. */
  tenant: string;
  /** Determines the networks that its members can be in (platform/member-networks.ts). */
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
  /** Maximum of open connections; null: no limit. */
  connectionLimit: number | null;
  /** Networks that can connect; null: all; empty: none. */
  allowedNetworks: string[] | null;
  insertXForwarded: boolean;
  /** For TERMINATED_HTTPS: served if no SNI certificate matches. */
  certificate: DesiredCertificate | null;
  /** By server name. */
  sniCertificates: DesiredCertificate[];
  /** HTTP basic authentication; empty: not required. Passwords are crypt(3) hashes. */
  users: { name: string; encryptedPassword: string }[];
  timeoutClientData: number | null;
  timeoutMemberConnect: number | null;
  timeoutMemberData: number | null;
  /** The pool that receives its traffic; null: none (503, or a closed connection). */
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
  /** For HTTPS pools: PEM bundles that verify the certificates of members. */
  caBundle: string | null;
  revocationList: string | null;
  /** Sent to members that request a client certificate. */
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
  /** For APP_COOKIE: the name of the application's cookie. */
  cookieName: string | null;
  /** For SOURCE_IP: seconds without traffic until an entry expires. */
  timeoutSeconds: number | null;
  /** For SOURCE_IP: netmask; clients in the same network share an entry. */
  granularity: string | null;
}

export interface DesiredCertificate {
  /** The id of its secret. The same id always has the same content. */
  id: string;
  /** Certificate, chain and private key, PEM, in that order. */
  pem: string;
}

export interface ObservedLoadBalancer {
  /** What this call changed, for the log; empty: nothing. */
  changed: string[];
  /** Whether the change needed a reload of the proxy's configuration. */
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

/** The state of one load balancer, as the proxy reports it. */
export interface LoadBalancerReading {
  id: string;
  /** By member id. Removed members that still drain are absent. */
  members: Map<string, MemberHealth>;
  /** By listener id. Listeners that do not listen are absent. */
  listeners: Map<string, ListenerCounters>;
}

/**
 * If members are outside the allowed networks, `apply` serves all other members and then fails permanently, naming them. A
 * member that an earlier call already excluded is DOWN and does not make later calls fail.
 */
export interface LoadBalancerDriver extends Driver<DesiredLoadBalancer, ObservedLoadBalancer> {
  /** Reads all load balancers; cheap enough to call every second. @throws DriverError */
  read(): Promise<LoadBalancerReading[]>;
  /**
   * Checks the members of all load balancers against the allowed networks again, because the addresses of a host change.
   * Members that are no longer allowed get no traffic and no health checks, and are DOWN; the others are restored. Never
   * rejects.
   */
  recheckMembers(): Promise<void>;
  /** Since the start of this process, for metrics. */
  counters(): { reloads: number; runtimeChanges: number };
}
