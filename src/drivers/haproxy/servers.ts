/**
 * Pure: the servers of a pool in HAProxy, and the runtime commands that bring them to the desired state.
 *
 * A server is named by the id and role of its member: `member_<id>` or `backup_<id>`. HAProxy cannot change the role of a
 * server, so a member with a new role gets a second server and the first drains. Everything else changes in place.
 *
 * Invariant: additions come before removals, so that a pool is never without servers.
 */
import { address, command, endpoint } from './quote.ts';

/** A desired server. */
export interface Server {
  name: string;
  member: string;
  address: string;
  port: number;
  weight: number;
  backup: boolean;
  /** Gets no connections; open connections are not closed. */
  maint: boolean;
  checkAddress: string;
  checkPort: number;
}

export interface RenderedPool {
  id: string;
  backend: string;
  servers: Server[];
  /** Options of all servers: TLS, PROXY, checks. */
  options: string[];
  /** Whether HAProxy runs the health checks. */
  checked: boolean;
  /** Whether cookies assign clients to servers. */
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

interface Difference {
  commands: string[];
  /** Servers without a desired server. `kept`: the member remains in another role. */
  removed: { name: string; kept: boolean }[];
}

/** The bit 0x04 records that the configuration had `disabled`. It stays when the server is enabled. */
const MAINT_BIT = 0x01;
const DRAIN_BITS = 0x08;
const CHECK_ENABLED_OR_PAUSED = 0x04 | 0x08;

/** Parses the response to `show servers state`, of version 1. Servers that are not members are omitted. */
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
      maint: (administrative & MAINT_BIT) !== 0,
      draining: (administrative & DRAIN_BITS) !== 0,
      checkEnabled: (check & CHECK_ENABLED_OR_PAUSED) !== 0,
      checkAddress: field[22] ?? '',
      checkPort: Number(field[21]),
    });
  }
  return servers;
}

/** Whether a server is that of a member. HAProxy's configuration has others, such as FILES_SERVER. */
export function isMember(name: string | undefined): boolean {
  return name !== undefined && /^(member|backup)_/.test(name);
}

/** The words after `server` in a file, and after `add server`. */
function serverWords(pool: RenderedPool, server: Server): string[] {
  const words = [endpoint(server.address, server.port), 'weight', String(server.weight)];
  if (server.backup) words.push('backup');
  words.push(...pool.options);
  if (!pool.checked) return words;
  return [...words, 'addr', address(server.checkAddress), 'port', String(server.checkPort)];
}

/** The line of the configuration file. `add server` takes the same words without `disabled`. */
export function serverLine(pool: RenderedPool, server: Server): string {
  return `  server ${[server.name, ...serverWords(pool, server)].join(' ')}${server.maint ? ' disabled' : ''}\n`;
}

/** The commands of the runtime API that make the observed servers those of the pool. */
export function difference(pool: RenderedPool, observed: ObservedServer[]): Difference {
  const current = new Map(observed.map((server) => [server.name, server]));
  const wanted = new Set(pool.servers.map(({ name }) => name));
  const members = new Set(pool.servers.map(({ member }) => member));
  const found: Difference = { commands: [], removed: [] };
  let added = false;
  for (const server of pool.servers) {
    const existing = current.get(server.name);
    if (existing) {
      change(pool, server, existing, found);
      continue;
    }
    added = true;
    const at = `${pool.backend}/${server.name}`;
    found.commands.push(command('add', 'server', at, ...serverWords(pool, server)));
    if (pool.checked) found.commands.push(command('enable', 'health', at));
    if (!server.maint) found.commands.push(command('enable', 'server', at));
  }
  // Added servers get no cookie without this command.
  if (added && pool.cookies) found.commands.push(command('enable', 'dynamic-cookie', 'backend', pool.backend));
  for (const server of observed) {
    if (wanted.has(server.name)) continue;
    const member = server.name.slice(server.name.indexOf('_') + 1);
    found.removed.push({ name: server.name, kept: members.has(member) });
    if (server.maint) continue;
    found.commands.push(command('set', 'server', `${pool.backend}/${server.name}`, 'state', 'maint'));
  }
  return found;
}

function change(pool: RenderedPool, server: Server, current: ObservedServer, found: Difference): void {
  const at = `${pool.backend}/${server.name}`;
  const set = (...words: (string | number)[]) => found.commands.push(command('set', 'server', at, ...words));
  if (!sameAddress(current.address, server.address) || current.port !== server.port) {
    set('addr', server.address, 'port', server.port);
  }
  if (current.weight !== server.weight) set('weight', server.weight);
  if (pool.checked) {
    if (!sameAddress(current.checkAddress, server.checkAddress) || current.checkPort !== server.checkPort) {
      set('check-addr', server.checkAddress, 'port', server.checkPort);
    }
    if (!current.checkEnabled) found.commands.push(command('enable', 'health', at));
  }
  if (current.maint !== server.maint || current.draining) {
    set('state', server.maint ? 'maint' : 'ready');
  }
}

function sameAddress(one: string, other: string): boolean {
  return one === other || (one.includes(':') && other.includes(':') && canonical(one) === canonical(other));
}

/** HAProxy reports one of many spellings of an IPv6 address. */
function canonical(address: string): string {
  return new URL(`http://[${address}]/`).hostname;
}
