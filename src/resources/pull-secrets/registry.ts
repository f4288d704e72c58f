/** Parses registry names as `docker login` does. */
import { isIP } from 'node:net';

export interface Registry {
  /** Host and port of the registry's API. */
  authority: string;
  /** The key of its credentials in Docker's configuration file. */
  key: string;
}

/** Docker Hub has several names, one API host, and a historical key for its credentials. */
const hubNames = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);
const hub: Registry = { authority: 'registry-1.docker.io', key: 'https://index.docker.io/v1/' };

/** Whether the text has a user or a password before the host: responses would show it. */
export function hasCredentials(text: string): boolean {
  return /^([a-z][a-z0-9+.-]*:)?(\/\/)?[^/?#]*@/i.test(text);
}

/** Why no client can use a login, or null. HTTP ends the user name at the first colon (RFC 7617). */
export function errorOfLogin(login: string): string | null {
  return login.includes(':') ? 'login must not contain a colon' : null;
}

/** Accepts `host`, `host:port`, and either of them as a URL; a path is ignored. Returns a message if the text is invalid. */
export function parseRegistry(text: string): Registry | string {
  const [, scheme, rest = ''] = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):\/\/)?(.*)$/s.exec(text) ?? [];
  if (scheme !== undefined && !/^https?$/i.test(scheme)) return 'must be a host, or begin with https:// or http://';
  const [authority = ''] = rest.split(/[/?#]/, 1);
  if (authority.includes('@')) return 'must not contain credentials; use the fields login and password';
  if (/[?#]/.test(rest)) return 'must not contain a query or a fragment';
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  if (!isHost(host)) return 'must be a registry such as registry.example.com, registry.example.com:5000 or docker.io';
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65_535)) return 'must have a port from 1 to 65535';
  const name = host.toLowerCase();
  if (hubNames.has(name)) return hub;
  const whole = port === undefined ? name : `${name}:${Number(port)}`;
  return { authority: whole, key: whole };
}

function isHost(host: string): boolean {
  if (host.startsWith('[')) return isIP(host.slice(1, -1)) === 6 && !host.includes('%');
  if (/^[\d.]+$/.test(host)) return isIP(host) === 4;
  return (
    host.length <= 253 && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i.test(host)
  );
}

/** The file from which Docker, Podman, skopeo and Kubernetes read credentials. */
export function dockerConfigJson({ key }: Registry, login: string, password: string) {
  const auth = Buffer.from(`${login}:${password}`).toString('base64');
  return { auths: { [key]: { username: login, password, auth } } };
}
