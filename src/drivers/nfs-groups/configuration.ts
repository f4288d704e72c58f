/**
 * Renders the configuration of a group's Ganesha; pure. Everything that clients recognize a server by (Server_Scope,
 * Server_Owner, node id, export ids) belongs to the group and is the same on every host, so that clients reclaim their state
 * from whichever host serves the group.
 *
 * Facts measured with Ganesha 4.3:
 * - `rados_ng` ignores `nodeid` in the name of its object, so each group has a namespace.
 * - NFSv3 would need one rpcbind for all groups of a host; a server that ends removes the registration of the others.
 * - An export whose client was evicted fails until Ganesha is restarted; SIGHUP does not help (probe.ts).
 */
import { exportBlock } from '../ganesha/configuration.ts';
import { CLIENT_METADATA, clientLabel, recoveryNamespace } from './records.ts';
import type { PublishedShare } from './share-state.ts';

export interface GroupSettings {
  regionId: number;
  /** The address of the group. */
  group: string;
  port: number;
  /** The pool of the recovery state, and the user (without `client.`) who can write to it. */
  pool: string;
  user: string;
  /** The configuration of the cluster, and its copy for the clients of the group. */
  cephConf: string;
  clientConf: string;
}

/** Seconds. Clients that did not renew their lease for so long lose their locks. */
const LEASE_SECONDS = 20;
/** Seconds. After a start, as long as clients of the earlier server may reclaim; shorter if all of them have. */
const GRACE_SECONDS = 25;

/** `shares`: by id. @throws DriverError, permanent, for networks that Ganesha's configuration cannot hold */
export function renderGroup(settings: GroupSettings, shares: ReadonlyMap<string, PublishedShare>): string {
  const { regionId, group, port, pool, user, cephConf, clientConf } = settings;
  const core = `NFS_CORE_PARAM {
  NFS_Port = ${port};
  Bind_addr = ${group};
  Protocols = 4;
  mount_path_pseudo = true;
  Enable_NLM = false;
  Enable_RQUOTA = false;
  Enable_UDP = false;
}
NFSV4 {
  Graceless = false;
  Lease_Lifetime = ${LEASE_SECONDS};
  Grace_Period = ${GRACE_SECONDS};
  Delegations = false;
  Only_Numeric_Owners = true;
  Minor_Versions = 0, 1, 2;
  RecoveryBackend = rados_ng;
  Server_Scope = "cloudyard-${regionId}";
  Server_Owner = "${group}";
}
RADOS_KV {
  ceph_conf = "${cephConf}";
  userid = "${user}";
  pool = "${pool}";
  namespace = "${recoveryNamespace(regionId, group)}";
  nodeid = "${nodeId(settings)}";
}
CEPH { Ceph_Conf = "${clientConf}"; }
NFS_KRB5 { Active_krb5 = false; }
LOG {
  Default_Log_Level = EVENT;
  Components { CONFIG = INFO; DBUS = FATAL; }
}
`;
  return [core, ...[...shares].map(([id, share]) => renderExport(group, id, share))].join('\n');
}

/** FSAL_CEPH names the clients of its exports after it, and evicts an earlier client of the same name. */
const nodeId = ({ regionId, group }: GroupSettings) => `cloudyard-${regionId}-${group}`;

/** The probe comes from the group's own address, which no client has, and sees names only. */
function renderExport(group: string, id: string, share: PublishedShare): string {
  return exportBlock({
    id,
    ...share,
    protocols: '4',
    fsal: `Name = CEPH; User_Id = "${share.user}"; Secret_Access_Key = "${share.key}"; Filesystem = "${share.filesystem}";`,
    firstClients: `  CLIENT { Clients = ${group}; Access_Type = MDONLY_RO; Squash = no_root_squash; Protocols = 4; }\n`,
  });
}

/** The configuration of the cluster, in which the clients of the group have a label that fencing finds them by. */
export function renderClientConf(cephConf: string, { regionId, group }: GroupSettings): string {
  return `${cephConf.trimEnd()}\n\n[client]\nclient_metadata = ${CLIENT_METADATA}=${clientLabel(regionId, group)}\n`;
}
