/**
 * Pure: the configuration of keepalived. Every router has a marker, an address on the loopback interface: it is the only
 * address in VRRP packets, so a router exists before its first address, and it shows which routers this host holds.
 *
 * `nopreempt`: a host that returns takes nothing back by itself, which would close connections; part.ts hands over.
 * `vrrp_priority`, not `vrrp_rt_priority`: keepalived 2.2 sets the limit of real-time CPU time (RLIMIT_RTTIME) to 0 with a
 * reload, and cannot raise it without CAP_SYS_RESOURCE. The kernel then kills its child within moments, and all addresses
 * leave the host.
 *
 * Two masters after a separation: the one with the lower priority steps down, and the other announces its addresses again.
 */
import { isIP } from 'node:net';
import { cidrOf } from '../../platform/network-address.ts';
import type { VirtualRouter } from './routers.ts';

interface RouterSettings extends VirtualRouter {
  priority: number;
  /** While it contains 1, this host does not hold the router. */
  blockFile: string;
}

interface KeepalivedSettings {
  /** Of this host. */
  name: string;
  address: string;
  interface: string;
  /** The addresses of the other hosts. keepalived needs one, so the first host of a region sends to itself. */
  peers: string[];
  routers: RouterSettings[];
  /** Fails while this host must not hold addresses. */
  leaseCheck: string;
}

/** Three of them without an advertisement, and a host is dead. Unit: seconds. */
const ADVERT_SECONDS = 0.2;
const REPEAT_ANNOUNCEMENTS_SECONDS = 30;

/** An address on the loopback interface, of the protocol that the hosts use. */
export function markerOf({ id }: Pick<VirtualRouter, 'id'>, hostAddress: string): string {
  return isIP(hostAddress) === 6 ? `fd86:82::${id.toString(16)}` : `127.86.82.${id}`;
}

/** Returns the whole configuration file. */
export function renderKeepalived(settings: KeepalivedSettings): string {
  return `global_defs {
  router_id ${settings.name}
  script_user root
  enable_script_security
  vrrp_version 3
  vrrp_priority -20
  vrrp_skip_check_adv_addr
  vrrp_garp_master_delay 1
  vrrp_garp_master_repeat 2
  vrrp_garp_master_refresh ${REPEAT_ANNOUNCEMENTS_SECONDS}
  vrrp_garp_lower_prio_delay 1
  vrrp_garp_lower_prio_repeat 2
  vrrp_higher_prio_send_advert true
}
vrrp_script lease {
  script "${settings.leaseCheck}"
  interval 1
  timeout 2
  fall 1
  rise 1
}
${settings.routers.map((router) => renderRouter(router, settings)).join('')}`;
}

function renderRouter(router: RouterSettings, settings: KeepalivedSettings): string {
  const device = settings.interface;
  const excluded = router.addresses.map((each) => `    ${cidrOf(each)} dev ${device}\n`);
  const marker = markerOf(router, settings.address);
  const peers = settings.peers.length > 0 ? settings.peers : [isIP(settings.address) === 6 ? '::1' : '127.0.0.1'];
  return `track_file ${router.name} {
  file "${router.blockFile}"
  weight 0
}
vrrp_instance ${router.name} {
  state BACKUP
  nopreempt
  interface ${device}
  virtual_router_id ${router.id}
  priority ${router.priority}
  advert_int ${ADVERT_SECONDS}
  unicast_src_ip ${settings.address}
  unicast_peer {
${peers.map((peer) => `    ${peer}\n`).join('')}  }
  check_unicast_src
  track_script {
    lease
  }
  track_file {
    ${router.name}
  }
  virtual_ipaddress {
    ${cidrOf(marker)} dev lo
  }
${excluded.length > 0 ? `  virtual_ipaddress_excluded {\n${excluded.join('')}  }\n` : ''}}
`;
}

/** Compares the end of the lease with the clock of the kernel, both in seconds since the host booted. */
export function renderLeaseCheck(leaseFile: string): string {
  return `#!/bin/sh
read -r until <'${leaseFile}' || exit 1
read -r now rest </proc/uptime || exit 1
[ "\${now%.*}" -lt "\${until%.*}" ]
`;
}
