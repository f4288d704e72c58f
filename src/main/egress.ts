/** Applies the filter of drivers/egress-filter.ts to what this worker runs, and keeps it in force. */
import { ACCOUNTS } from '../drivers/confined.ts';
import { createEgressFilter } from '../drivers/egress-filter.ts';
import type { EgressFilter, EgressRule } from '../drivers/egress-filter.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { OwnPort } from '../platform/own-ports.ts';
import { findServiceAccount } from '../platform/service-account.ts';
import type { Settings } from '../platform/settings.ts';

export interface Egress {
  /** For a start of drivers, and from time to time: accounts, ports and other programs' rules change. */
  apply(): Promise<void>;
  remove(): Promise<void>;
  /** The status of load balancers, with what the kernel does not enforce. */
  annotate(status: DriverStatus): DriverStatus;
}

/** Null where no program carries tenants' traffic. */
export function egressFor(settings: Settings, ownPorts: () => readonly OwnPort[]): Egress | null {
  if (settings.loadBalancerDriver === 'simulated' && settings.registryDriver === 'simulated') return null;
  const filter = createEgressFilter(settings.dataDir);
  return {
    apply: () => filter.apply(rulesFor(ownPorts())),
    remove: filter.remove,
    annotate: (status) => annotated(status, filter),
  };
}

/** Distribution reports to the API what was pushed. */
function rulesFor(ports: readonly OwnPort[]): EgressRule[] {
  const withoutApi = ports.filter(({ daemon }) => daemon !== 'API' && daemon !== 'public URL');
  return Object.values(ACCOUNTS).flatMap((name) => {
    const account = findServiceAccount(name);
    return account ? [{ account, ports: name === ACCOUNTS.registry ? withoutApi : ports }] : [];
  });
}

function annotated(status: DriverStatus, filter: EgressFilter): DriverStatus {
  const gap = filter.gap();
  if (!gap || !status.real) return status;
  const remedy = [status.remedy, gap.remedy].filter((each) => each !== undefined).join('; ');
  return { ...status, detail: `${status.detail}; ${gap.detail}`, remedy };
}
