/** This host among the hosts of its region. */
import { networkInterfaces } from 'node:os';
import type { HostView, RegionView } from '../hosts/part.ts';
import { DriverError } from './driver.ts';

/** @throws DriverError, retryable, if this host is not in the region */
export function selfOf({ self, hosts }: RegionView): HostView {
  const found = hosts.find(({ name }) => name === self);
  if (!found) throw unavailable(`host ${self} is not in the region`);
  return found;
}

/** Where the host adds addresses that move. @throws DriverError, retryable, if no interface has the address of the host */
export function interfaceOf({ interface: device, address }: HostView): string {
  if (device !== null) return device;
  const found = Object.entries(networkInterfaces()).find(([, list]) => list?.some((each) => each.address === address));
  if (found) return found[0];
  throw unavailable(`no network interface has ${address}; set CLOUDYARD_HOST_ADDRESS or CLOUDYARD_HOST_INTERFACE`);
}

export function unavailable(message: string): DriverError {
  const customerMessage = 'the addresses of the region cannot be moved now';
  return new DriverError(message, { customerMessage, retryable: true });
}
