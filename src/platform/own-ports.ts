/**
 * Where Cloudyard itself listens and what it connects to; pure. Load balancers must not carry tenants there
 * (member-networks.ts). Drivers declare theirs in drivers/kinds.ts. Daemons that are not listed have no port: the embedded
 * PostgreSQL, HAProxy and nginx are administered over unix sockets, and distribution runs without its debug server.
 */
import type { CoreSettings } from './settings.ts';

export interface OwnPort {
  /** For messages: `API`, `NFS`. */
  daemon: string;
  port: number;
}

/**
 * The ports of Cloudyard's own processes as far as the settings determine them. An API server whose port is not fixed may
 * take another one, so its port is known only when it listens.
 */
export function ownPorts({ portIsFixed, port, workerPort, tls }: CoreSettings): OwnPort[] {
  const ports = [
    { daemon: 'API', port: portIsFixed ? port : 0 },
    { daemon: 'worker', port: workerPort },
    { daemon: 'redirect to HTTPS', port: tls.redirectPort },
  ];
  return ports.filter((each) => each.port !== 0);
}

/** A part of the control plane as a setting names it. */
export interface ControlPlaneEndpoint {
  name: string;
  host: string;
  /** Null where its port is not one of ours, or is in `ownPorts`. */
  port: number | null;
}

/** The hosts that the settings name: the database, the public URL and the address of the API. */
export function controlPlaneEndpoints(settings: CoreSettings): ControlPlaneEndpoint[] {
  return [
    ...endpointOf('database', settings.databaseUrl, 5432),
    ...webEndpointOf('public URL', settings.publicUrl),
    { name: 'API', host: settings.host, port: null },
  ];
}

/** The endpoint of an HTTP or HTTPS URL. */
export function webEndpointOf(name: string, url: string | undefined): ControlPlaneEndpoint[] {
  return url === undefined ? [] : endpointOf(name, url, portOf(url));
}

/** The port of an HTTP or HTTPS URL, which omits the usual one. */
export function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

/** A database URL may name a unix socket (`postgres:///db?host=/run/postgresql`), which has no endpoint. */
export function endpointOf(name: string, text: string | undefined, usualPort: number): ControlPlaneEndpoint[] {
  if (text === undefined || !URL.canParse(text)) return [];
  const url = new URL(text);
  const host = decodeURIComponent(url.searchParams.get('host') ?? url.hostname).replace(/^\[(.*)\]$/, '$1');
  if (host === '' || host.startsWith('/')) return [];
  return [{ name, host, port: Number(url.searchParams.get('port') ?? url.port) || usualPort }];
}
