/** The addresses of this host, and its place among the hosts of its region. */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { HostView, RegionView } from '../hosts/part.ts';
import { DriverError } from './driver.ts';

/** Reads memory of the kernel only. Without addresses of interfaces that are down. */
export function ownAddresses(): Set<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address)));
}

/** Whether programs can listen on `host`: an address of an interface or in 127.0.0.0/8. False for names, and behind NAT. */
export function isOwnAddress(host: string): boolean {
  return isIP(host) !== 0 && (host.startsWith('127.') || ownAddresses().has(host));
}

/** @throws DriverError, retryable, if this host is not in the region */
export function selfOf({ self, hosts }: RegionView): HostView {
  const found = hosts.find(({ name }) => name === self);
  if (!found) throw movingAddressError(`host ${self} is not in the region`);
  return found;
}

/** Where the host adds addresses that move. @throws DriverError, retryable, if no interface has the address of the host */
export function interfaceOf({ interface: device, address }: HostView): string {
  if (device !== null) return device;
  const found = Object.entries(networkInterfaces()).find(([, list]) => list?.some((each) => each.address === address));
  if (found) return found[0];
  throw movingAddressError(
    `no network interface has ${address}; set CLOUDYARD_HOST_ADDRESS or CLOUDYARD_HOST_INTERFACE`,
  );
}

/** A retryable error about addresses that move between hosts. `message`: for operators. */
export function movingAddressError(message: string): DriverError {
  const customerMessage = 'the addresses of the region cannot be moved now';
  return new DriverError(message, { customerMessage, retryable: true });
}
