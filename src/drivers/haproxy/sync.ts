/**
 * Makes the servers of pools what they are to be, by what HAProxy itself says it has: read, compare, tell, read again.
 * Nothing is concluded from the answer to a command, and nothing is remembered, so it does not matter who changed what,
 * or how far another process got.
 *
 * How it fails: a retryable DriverError when HAProxy does not become as told in a few rounds.
 */
import { type Host, servedSpecs } from './host.ts';
import { command } from './quote.ts';
import { noAnswer } from './runtime.ts';
import { difference, type ObservedServer, parseServersState, type RenderedPool } from './servers.ts';

const ROUNDS = 4;
/** With more pools than this, everything is asked for at once. */
const ONE_BY_ONE = 50;

/** Resolves with what it changed, in words. @throws DriverError */
export async function syncServers(host: Host, pools: RenderedPool[]): Promise<string[]> {
  const changed: string[] = [];
  let answer = '';
  for (let round = 0; round < ROUNDS; round += 1) {
    const observed = await observe(host, pools);
    const commands: string[] = [];
    for (const pool of pools) {
      const has = observed.get(pool.backend) ?? [];
      const found = difference(pool, has);
      for (const { name } of pool.servers) host.drains.cancel(pool.backend, name);
      for (const { name, kept } of found.gone) host.drains.add(pool.backend, name, { kept });
      commands.push(...found.commands, ...healthCommands(host, pool, has));
      changed.push(...found.changed);
    }
    if (commands.length === 0) return [...new Set(changed)];
    host.counts.runtimeChanges += commands.length;
    answer = await host.process.ask(commands);
  }
  throw noAnswer(`HAProxy does not take what it is told: ${answer.replaceAll(/\s+/g, ' ').slice(0, 500)}`);
}

async function observe(host: Host, pools: RenderedPool[]): Promise<Map<string, ObservedServer[]>> {
  const wanted = new Map(pools.map(({ backend }): [string, ObservedServer[]] => [backend, []]));
  if (wanted.size === 0) return wanted;
  const ask =
    pools.length > ONE_BY_ONE
      ? ['show servers state']
      : pools.map(({ backend }) => command('show', 'servers', 'state', backend));
  for (const server of parseServersState(await host.process.ask(ask))) wanted.get(server.backend)?.push(server);
  return wanted;
}

/** Of members that the driver probes, and of those that nobody does any more. */
export function healthCommands(host: Host, pool: RenderedPool, observed: ObservedServer[]): string[] {
  if (pool.checked) return [];
  const there = new Map(observed.map((server) => [server.name, server]));
  return pool.servers.flatMap(({ name, member, maint }) => {
    const has = there.get(name);
    const up = host.probes.verdict(member) ?? true;
    if (!has || maint || has.maint || has.up === up) return [];
    return [command('set', 'server', `${pool.backend}/${name}`, 'health', up ? 'up' : 'down')];
  });
}

export async function updateUdp(host: Host): Promise<void> {
  await host.udp?.update(servedSpecs(host), host.probes.verdict);
}

export function allPools({ rendered }: Host): RenderedPool[] {
  return [...rendered.values()].flatMap(({ pools }) => pools);
}
