/**
 * Synchronizes the servers of pools with HAProxy: read, compare, send commands, read again. The state of HAProxy is the only
 * input, so a crash between two commands and changes by other processes are repaired.
 *
 * Failure modes: a retryable DriverError if HAProxy still differs after a few rounds.
 */
import { proxyUnavailable } from './errors.ts';
import { type Host, servedSpecs } from './host.ts';
import { command } from './quote.ts';
import { difference, type ObservedServer, parseServersState, type RenderedPool } from './servers.ts';

const ROUNDS = 4;
/** With more pools than this, one command reads all of them. */
const MAX_POOLS_BY_NAME = 50;

/** `pools`: all by default. @throws DriverError */
export async function syncServers(host: Host, pools = allPools(host)): Promise<void> {
  let response = '';
  for (let round = 0; round < ROUNDS; round += 1) {
    const observed = await observe(host, pools);
    const commands: string[] = [];
    for (const pool of pools) {
      const current = observed.get(pool.backend) ?? [];
      const found = difference(pool, current);
      for (const { name } of pool.servers) host.drains.cancel(pool.backend, name);
      for (const { name, kept } of found.removed) host.drains.add(pool.backend, name, { kept });
      commands.push(...found.commands, ...healthCommands(host, pool, current));
    }
    if (commands.length === 0) return;
    host.counts.runtimeChanges += commands.length;
    response = await host.process.ask(commands);
  }
  throw proxyUnavailable(`HAProxy does not follow commands: ${response.replaceAll(/\s+/g, ' ').slice(0, 500)}`);
}

async function observe(host: Host, pools: RenderedPool[]): Promise<Map<string, ObservedServer[]>> {
  const wanted = new Map(pools.map(({ backend }): [string, ObservedServer[]] => [backend, []]));
  if (wanted.size === 0) return wanted;
  const ask =
    pools.length > MAX_POOLS_BY_NAME
      ? ['show servers state']
      : pools.map(({ backend }) => command('show', 'servers', 'state', backend));
  for (const server of parseServersState(await host.process.ask(ask))) wanted.get(server.backend)?.push(server);
  return wanted;
}

/** For members that the driver probes, and members without a monitor. */
function healthCommands(host: Host, pool: RenderedPool, observed: ObservedServer[]): string[] {
  if (pool.checked) return [];
  const current = new Map(observed.map((server) => [server.name, server]));
  return pool.servers.flatMap(({ name, member, maint }) => {
    const server = current.get(name);
    const up = host.probes.verdict(member) ?? true;
    if (!server || maint || server.maint || server.up === up) return [];
    return [command('set', 'server', `${pool.backend}/${name}`, 'health', up ? 'up' : 'down')];
  });
}

/** Brings nginx to the served specs; does nothing without nginx. @throws DriverError */
export async function updateUdp(host: Host): Promise<void> {
  await host.udp?.update(servedSpecs(host), host.probes.verdict);
}

export function allPools({ rendered }: Host): RenderedPool[] {
  return [...rendered.values()].flatMap(({ pools }) => pools);
}
