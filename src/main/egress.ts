/** Applies the filter of drivers/egress-filter.ts to the programs that this worker runs. */
import { ACCOUNTS } from '../drivers/confined.ts';
import { createEgressFilter, type EgressRule } from '../drivers/egress-filter.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { OwnPort } from '../platform/own-ports.ts';
import { findServiceAccount } from '../platform/service-account.ts';
import { usesEgressFilter, withGap } from './drivers.ts';
import type { Opened } from './open-services.ts';

type EgressDeps = Pick<Opened, 'settings' | 'controlPlane' | 'closing'>;

/** Applies the filter, and adds the step that removes it. Null if no program on this host carries tenants' traffic. */
export async function openEgress({ settings, controlPlane, closing }: EgressDeps) {
  if (!usesEgressFilter(settings)) return null;
  const filter = createEgressFilter(settings.dataDir);
  const apply = () => filter.apply(rulesFor(controlPlane.ownPorts()));
  closing.push(async (mode) => mode === 'stop' && filter.remove());
  await apply();
  return {
    /** Call it when drivers start and at intervals, because accounts, ports and the rules of other programs change. */
    apply,
    /** Adds to the status of a driver what the kernel does not enforce. */
    annotate(status: DriverStatus): DriverStatus {
      const gap = filter.gap();
      return gap && status.real ? withGap(status, gap) : status;
    },
  };
}

/** Distribution must reach the API, because it reports pushed images there. */
function rulesFor(ports: readonly OwnPort[]): EgressRule[] {
  const withoutApi = ports.filter(({ daemon }) => daemon !== 'API' && daemon !== 'public URL');
  return Object.values(ACCOUNTS).flatMap((name) => {
    const account = findServiceAccount(name);
    return account ? [{ account, ports: name === ACCOUNTS.registry ? withoutApi : ports }] : [];
  });
}
