/** What `docker login` makes of the registry that it is given. */
import { isIP } from 'node:net';

export interface Registry {
  /** Where it is asked. */
  authority: string;
  /** What a client looks its login up by, in the file that Docker keeps. */
  key: string;
}

/** Docker Hub by its names; what its registry listens on, and what its logins are kept under since ever. */
const hubNames = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);
const hub: Registry = { authority: 'registry-1.docker.io', key: 'https://index.docker.io/v1/' };

/** Takes `host`, `host:port`, and either of them as a URL; a path does not count. Returns what is wrong in words. */
export function parseRegistry(text: string): Registry | string {
  const [, scheme, rest] = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):\/\/)?(.*)$/s.exec(text) as unknown as [
    string,
    string?,
    string?,
  ];
  if (scheme !== undefined && !/^https?$/i.test(scheme)) return 'must be a host, or begin with https:// or http://';
  const [authority = ''] = rest!.split(/[/?#]/, 1);
  if (authority.includes('@')) return 'must not have a login or password in it; they have fields of their own';
  if (/[?#]/.test(rest!)) return 'must not have a query or a fragment';
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

/** The file that Docker, Podman, skopeo and Kubernetes read logins from. */
export function dockerConfigJson({ key }: Registry, login: string, password: string) {
  const auth = Buffer.from(`${login}:${password}`).toString('base64');
  return { auths: { [key]: { username: login, password, auth } } };
}
