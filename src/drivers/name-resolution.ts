/**
 * Resolves names of hosts that customers choose, by the hosts file, DNS and the search domains of the machine.
 *
 * `dns.lookup` resolves two names at a time in a process, each on a thread. Names whose name servers do not respond would
 * occupy both, and delay the names of other customers, of the database and of the OpenID Connect provider. A `Resolver` uses no
 * thread.
 */
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

const queryMs = 1500;
const attempts = 2;

interface Sources {
  /** Default: those of the machine. */
  servers?: string[];
  hostsFile?: string;
  resolverFile?: string;
}

/** Empty if the name does not resolve. Each search domain may take some seconds for each name server; the caller limits the time. */
export async function addressesOf(host: string, sources: Sources = {}): Promise<LookupAddress[]> {
  const { servers, hostsFile = '/etc/hosts', resolverFile = '/etc/resolv.conf' } = sources;
  const name = host.replace(/\.$/, '').toLowerCase();
  const listed = listedIn(await linesOf(hostsFile), name);
  if (listed.length > 0) return toAddresses(listed);
  const domains = host.endsWith('.') ? [] : searchDomainsIn(await linesOf(resolverFile));
  const longer = domains.map((domain) => `${name}.${domain}`);
  for (const candidate of name.includes('.') ? [name, ...longer] : [...longer, name]) {
    const found = await query(candidate, servers);
    if (found.length > 0) return toAddresses(found);
  }
  return [];
}

const toAddresses = (addresses: string[]) => addresses.map((address) => ({ address, family: isIP(address) }));

/** The words of each line; none if the file cannot be read. */
async function linesOf(file: string): Promise<string[][]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').map((line) => line.replace(/#.*/, '').trim().split(/\s+/));
}

function listedIn(hosts: string[][], name: string): string[] {
  const isListed = ([address = '', ...names]: string[]) =>
    isIP(address) !== 0 && names.some((each) => each.toLowerCase() === name);
  return hosts.filter(isListed).map(([address]) => address!);
}

function searchDomainsIn(resolver: string[][]): string[] {
  return resolver.findLast(([keyword]) => keyword === 'search' || keyword === 'domain')?.slice(1) ?? [];
}

async function query(name: string, servers: string[] | undefined): Promise<string[]> {
  const resolver = new Resolver({ timeout: queryMs, tries: attempts });
  if (servers) resolver.setServers(servers);
  const answers = [resolver.resolve4(name), resolver.resolve6(name)].map((answer) => answer.catch(() => []));
  return (await Promise.all(answers)).flat();
}
