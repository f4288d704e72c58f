/**
 * What this driver cannot serve, in sentences for the customer; pure. The driver checks each load balancer before it
 * changes anything, and again when it reads its stored specs at a start; the simulated driver does the same. The API
 * does not call this: it has its own rules (400). Every setting either works or is refused here.
 */
import type { DesiredListener, DesiredLoadBalancer, DesiredMonitor, DesiredPool } from '../load-balancer.ts';
import { hashFault } from './authentication.ts';
import { fits, listenerMode, poolModes } from './protocols.ts';
import {
  isFreeText,
  isHostName,
  isId,
  isNetmask,
  isNetwork,
  isPlainAddress,
  isRequestPath,
  isStatusCodes,
  isToken,
} from './quote.ts';

/** What the host can do: a load balancer that needs more is refused. */
export interface Abilities {
  udp: boolean;
  ping: boolean;
}

export function refusals(desired: DesiredLoadBalancer, abilities: Abilities = { udp: true, ping: true }): string[] {
  const { listeners, pools } = desired;
  const everything = [desired, ...listeners, ...pools, ...pools.flatMap(({ members }) => members)];
  const ids = everything.map(({ id }) => id);
  const found: string[] = [];
  if (!isToken(desired.tenant)) found.push('the tenant is not a name');
  if (!isPlainAddress(desired.address)) found.push('the address of the load balancer is not an address');
  if (ids.some((id) => !isId(id))) found.push('an id is not a UUID');
  if (new Set(ids).size < ids.length) found.push('an id is used twice');
  const ports = listeners.map((each) => `${listenerMode(each) === 'udp' ? 'UDP' : 'TCP'} port ${each.port}`);
  for (const port of twice(ports)) found.push(`two listeners have ${port}`);
  for (const each of listeners) {
    found.push(...ofListener(each, pools, abilities).map((why) => `listener ${each.id}: ${why}`));
  }
  for (const each of pools) {
    found.push(...ofPool(each, listeners, desired.address, abilities).map((why) => `pool ${each.id}: ${why}`));
  }
  return found;
}

function ofListener(listener: DesiredListener, pools: DesiredPool[], abilities: Abilities): string[] {
  const { protocol, defaultPoolId, users, certificate, sniCertificates } = listener;
  const found: string[] = [];
  const pool = pools.find(({ id }) => id === defaultPoolId);
  if (defaultPoolId !== null && !pool) found.push(`there is no pool ${defaultPoolId}`);
  if (pool && !fits(protocol, pool.protocol))
    found.push(`${protocol} cannot use a pool with protocol ${pool.protocol}`);
  if (!isPort(listener.port)) found.push('the port must be 1 to 65535');
  if (protocol === 'TERMINATED_HTTPS' && !certificate) found.push('TERMINATED_HTTPS needs a certificate');
  if (protocol !== 'TERMINATED_HTTPS' && (certificate || sniCertificates.length > 0)) {
    found.push(`${protocol} takes no certificates`);
  }
  if (listener.insertXForwarded && !(listenerMode(listener) === 'http' && protocol !== 'PROMETHEUS')) {
    found.push(`${protocol} cannot insert X-Forwarded headers`);
  }
  if (users.length > 0 && listenerMode(listener) !== 'http') found.push(`${protocol} cannot ask for a user`);
  if (users.some(({ name }) => !isFreeText(name) || name === ''))
    found.push('a user name has characters that cannot be used');
  for (const name of twice(users.map(({ name }) => name))) found.push(`the user ${name} is listed twice`);
  if (users.some(({ encryptedPassword: hash }) => !isFreeText(hash) || hash === ''))
    found.push('a password is not a crypt(3) hash');
  for (const { encryptedPassword } of users) {
    const fault = hashFault(encryptedPassword);
    if (fault) found.push(`a password hash ${fault}`);
  }
  if (!(listener.allowedNetworks ?? []).every(isNetwork)) found.push('an allowed network is not a network');
  if (protocol === 'UDP' && !abilities.udp) found.push('this region cannot balance UDP');
  return found;
}

function ofPool(pool: DesiredPool, listeners: DesiredListener[], vip: string, abilities: Abilities): string[] {
  const modes = poolModes(pool, listeners);
  const found: string[] = [];
  const [mode = 'tcp'] = modes;
  if (modes.length > 1) found.push('it cannot serve a listener that balances requests and one that balances bytes');
  if (mode === 'udp' && !abilities.udp) found.push('this region cannot balance UDP');
  const tls = pool.caBundle !== null || pool.revocationList !== null || pool.clientCertificate !== null;
  if (tls && pool.protocol !== 'HTTPS') found.push(`${pool.protocol} takes no TLS secrets`);
  else if (tls && mode === 'tcp') found.push('its traffic is passed through as it is, so it takes no TLS secrets');
  if (pool.revocationList !== null && pool.caBundle === null) found.push('a revocation list needs a CA bundle');
  found.push(...ofPersistence(pool, mode, vip), ...ofMembers(pool, mode));
  if (pool.monitor) found.push(...ofMonitor(pool.monitor, mode, abilities));
  return found;
}

function ofPersistence(
  { persistence, protocol, algorithm, members }: DesiredPool,
  mode: string,
  vip: string,
): string[] {
  if (!persistence) return ofNginx(algorithm === 'SOURCE_IP' && mode === 'udp', members);
  const { type, cookieName, timeoutSeconds, granularity } = persistence;
  const found: string[] = [];
  if (type === 'SOURCE_IP') {
    if (cookieName !== null) found.push('SOURCE_IP persistence has no cookie');
    if (granularity !== null && !isNetmask(granularity, vip))
      found.push('the persistence granularity is not a netmask');
    if (mode === 'udp' && (granularity ?? timeoutSeconds) !== null) {
      found.push('UDP knows no persistence timeout or granularity');
    }
    return [...found, ...ofNginx(mode === 'udp', members)];
  }
  if (mode !== 'http') found.push(`${type} persistence needs requests, and ${protocol} has none here`);
  if ((timeoutSeconds ?? granularity) !== null) found.push(`${type} persistence has no timeout or granularity`);
  if (type === 'HTTP_COOKIE' && cookieName !== null) found.push('HTTP_COOKIE persistence names its cookie itself');
  if (type === 'APP_COOKIE' && !isToken(cookieName)) found.push('APP_COOKIE persistence needs the name of a cookie');
  return found;
}

function ofNginx(hashes: boolean, members: DesiredPool['members']): string[] {
  return hashes && members.some(({ backup }) => backup) ? ['UDP by source address cannot have backup members'] : [];
}

function ofMembers({ members }: DesiredPool, mode: string): string[] {
  const found: string[] = [];
  for (const member of members) {
    if (!isPlainAddress(member.address) || !isPort(member.port))
      found.push(`member ${member.id} has no valid address and port`);
    if (!(Number.isInteger(member.weight) && member.weight >= 0 && member.weight <= 256)) {
      found.push(`the weight of member ${member.id} must be 0 to 256`);
    }
    const { monitorAddress, monitorPort } = member;
    if (
      (monitorAddress !== null && !isPlainAddress(monitorAddress)) ||
      (monitorPort !== null && !isPort(monitorPort))
    ) {
      found.push(`member ${member.id} has no valid monitor address and port`);
    }
  }
  for (const each of twice(members.map(({ address, port }) => `${address}:${port}`)))
    found.push(`${each} is a member twice`);
  if (mode !== 'udp' && members.length > 4_000) found.push('it has more than 4000 members');
  return found;
}

function ofMonitor(monitor: DesiredMonitor, mode: string, abilities: Abilities): string[] {
  const { type } = monitor;
  const found: string[] = [];
  if ((mode === 'udp') !== (type === 'UDP-CONNECT') && type !== 'PING') {
    found.push(`a monitor of type ${type} makes no sense for its protocol`);
  }
  if (type === 'PING' && !abilities.ping) found.push('this region cannot ping');
  const asks = type === 'HTTP' || type === 'HTTPS';
  const { httpMethod, httpVersion, urlPath, expectedCodes, domainName } = monitor;
  if (!asks && (httpMethod ?? httpVersion ?? urlPath ?? expectedCodes) !== null) {
    found.push(`a monitor of type ${type} sends no request`);
  }
  if (!asks && type !== 'TLS-HELLO' && domainName !== null) found.push(`a monitor of type ${type} has no domain name`);
  if (httpMethod !== null && !/^[A-Z]{1,16}$/.test(httpMethod)) found.push('the HTTP method is unknown');
  if (urlPath !== null && !isRequestPath(urlPath)) found.push('the URL path cannot be used');
  if (domainName !== null && !isHostName(domainName)) found.push('the domain name cannot be used');
  if (expectedCodes !== null && !isStatusCodes(expectedCodes)) {
    found.push('expected codes are like 200, or 200,204, or 200-299');
  }
  return found;
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

function twice(list: string[]): string[] {
  return [...new Set(list.filter((each, at) => list.indexOf(each) !== at))];
}
