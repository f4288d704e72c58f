/** Lets programs listen on addresses that another host has at the moment. */
import { readFileSync, writeFileSync } from 'node:fs';
import { DriverError } from '../driver.ts';

const FILES = ['/proc/sys/net/ipv4/ip_nonlocal_bind', '/proc/sys/net/ipv6/ip_nonlocal_bind'];

/** @throws DriverError if the kernel does not allow it and this process must not change that */
export function allowNonLocalBind(): void {
  for (const file of FILES) {
    try {
      if (readFileSync(file, 'utf8').trim() !== '1') writeFileSync(file, '1');
    } catch (cause) {
      const setting = file.replace('/proc/sys/', '').replaceAll('/', '.');
      throw new DriverError(
        `${setting} must be 1: echo ${setting}=1 >/etc/sysctl.d/60-cloudyard.conf && sysctl --system`,
        {
          customerMessage: 'the host is not prepared for the addresses of the region',
          retryable: true,
          cause,
        },
      );
    }
  }
}
