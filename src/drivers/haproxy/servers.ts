/**
 * The members of a pool as HAProxy has them, and the runtime commands that make it have what is desired; pure.
 *
 * A member's server is named by its id and its role: `member_<id>` or `backup_<id>`. HAProxy cannot change the role of
 * a server, so a member that changes it gets a second one and the first drains: nobody is cut off. A kept server is
 * never deleted: address, weight, state and where it is checked change in place.
 *
 * Additions come before removals, so that there is no instant without a member.
 */
import { command, endpoint } from './quote.ts';

/** A server as it is to be. */
export interface Server {
  name: string;
  member: string;
  address: string;
  port: number;
  weight: number;
  backup: boolean;
  /** Not to be used at all; open connections end by themselves. */
  maint: boolean;
  checkAddress: string;
  checkPort: number;
}

export interface RenderedPool {
  id: string;
  backend: string;
  servers: Server[];
  /** Words of every server line: TLS, PROXY, checks. */
  options: string[];
  /** HAProxy checks the servers itself. */
  checked: boolean;
  /** Its servers are known to browsers by a cookie. */
  cookies: boolean;
}

/** A line of `show servers state`. */
export interface ObservedServer {
  backend: string;
  name: string;
  address: string;
  port: number;
  weight: number;
  up: boolean;
  maint: boolean;
  draining: boolean;
  checkEnabled: boolean;
  checkAddress: string;
  checkPort: number;
}

export interface Difference {
  commands: string[];
  /** In words for the log. */
  changed: string[];
  /** Servers that are no longer wanted, whether or not a command was needed for that. */
  gone: { name: string; kept: boolean }[];
}

const MAINT_BITS = 0x01 | 0x04;
const DRAIN_BITS = 0x08;
const CHECK_ENABLED_OR_PAUSED = 0x04 | 0x08;

export function parseServersState(text: string): ObservedServer[] {
  const servers: ObservedServer[] = [];
  for (const line of text.split('\n')) {
    const field = line.split(' ');
    if (field.length < 24 || !isMember(field[3])) continue;
    const [administrative, check] = [Number(field[6]), Number(field[13])];
    servers.push({
      backend: field[1] ?? '',
      name: field[3] ?? '',
      address: field[4] ?? '',
      port: Number(field[18]),
      weight: Number(field[7]),
      up: field[5] !== '0',
      maint: (administrative & MAINT_BITS) !== 0,
      draining: (administrative & DRAIN_BITS) !== 0,
      checkEnabled: (check & CHECK_ENABLED_OR_PAUSED) !== 0,
      checkAddress: field[22] ?? '',
      checkPort: Number(field[21]),
    });
  }
  return servers;
}

export function isMember(name: string | undefined): boolean {
  return name !== undefined && /^(member|backup)_/.test(name);
}

/** The words after `server` in a file, without the member's own state; also those of `add server`. */
function serverWords(pool: RenderedPool, server: Server): string[] {
  const words = [endpoint(server.address, server.port), 'weight', String(server.weight)];
  if (server.backup) words.push('backup');
  words.push(...pool.options);
  if (!pool.checked) return words;
  const [checkAddress] = endpoint(server.checkAddress, server.checkPort).split(/:\d+$/);
  return [...words, 'addr', checkAddress ?? '', 'port', String(server.checkPort)];
}

export function serverLine(pool: RenderedPool, server: Server): string {
  return `  server ${[server.name, ...serverWords(pool, server)].join(' ')}${server.maint ? ' disabled' : ''}\n`;
}

export function difference(pool: RenderedPool, observed: ObservedServer[]): Difference {
  const there = new Map(observed.map((server) => [server.name, server]));
  const wanted = new Set(pool.servers.map(({ name }) => name));
  const members = new Set(pool.servers.map(({ member }) => member));
  const found: Difference = { commands: [], changed: [], gone: [] };
  let added = false;
  for (const server of pool.servers) {
    const has = there.get(server.name);
    if (has) {
      change(pool, server, has, found);
      continue;
    }
    added = true;
    const at = `${pool.backend}/${server.name}`;
    found.commands.push(command('add', 'server', at, ...serverWords(pool, server)));
    if (pool.checked) found.commands.push(command('enable', 'health', at));
    if (!server.maint) found.commands.push(command('enable', 'server', at));
    found.changed.push(`member ${server.member} added`);
  }
  // Servers that are added get no cookie of their own before this.
  if (added && pool.cookies) found.commands.push(command('enable', 'dynamic-cookie', 'backend', pool.backend));
  for (const server of observed) {
    if (wanted.has(server.name)) continue;
    const member = server.name.slice(server.name.indexOf('_') + 1);
    found.gone.push({ name: server.name, kept: members.has(member) });
    if (server.maint) continue;
    found.commands.push(command('set', 'server', `${pool.backend}/${server.name}`, 'state', 'maint'));
    found.changed.push(`member ${member} removed`);
  }
  return found;
}

function change(pool: RenderedPool, server: Server, has: ObservedServer, found: Difference): void {
  const at = `${pool.backend}/${server.name}`;
  const set = (what: string, ...words: (string | number)[]) => {
    found.commands.push(command('set', 'server', at, ...words));
    found.changed.push(`member ${server.member}: ${what}`);
  };
  if (!sameAddress(has.address, server.address) || has.port !== server.port) {
    set('address', 'addr', server.address, 'port', server.port);
  }
  if (has.weight !== server.weight) set('weight', 'weight', server.weight);
  if (pool.checked) {
    if (!sameAddress(has.checkAddress, server.checkAddress) || has.checkPort !== server.checkPort) {
      set('monitor address', 'check-addr', server.checkAddress, 'port', server.checkPort);
    }
    if (!has.checkEnabled) found.commands.push(command('enable', 'health', at));
  }
  if (has.maint !== server.maint || has.draining) {
    set(server.maint ? 'disabled' : 'enabled', 'state', server.maint ? 'maint' : 'ready');
  }
}

function sameAddress(one: string, other: string): boolean {
  return one === other || (one.includes(':') && other.includes(':') && canonical(one) === canonical(other));
}

/** IPv6 has many spellings, HAProxy tells one. */
function canonical(address: string): string {
  return new URL(`http://[${address}]/`).hostname;
}
