/**
 * The whole configuration of Ganesha from what is desired; pure. `core` only counts when Ganesha starts, `exports` are
 * read again at every SIGHUP. Nobody gets in by default: the export's own access is NONE, and rules are CLIENT blocks,
 * of which the first that matches decides. Duplicate networks: the last rule given wins.
 */
import type { Layout } from './layout.ts';
import { bySpecificity, clientsOf, parseNetwork } from './networks.ts';
import type { Spec } from './specs.ts';

export interface ServerSettings {
  /** Null: every address. */
  bindAddress: string | null;
  port: number;
  mountPort: number;
  /** NFSv3 as well as NFSv4; needs rpcbind. */
  version3: boolean;
}

const ANONYMOUS = 65_534;

export function exportPath(id: string): string {
  return `/shares/${id}`;
}

/**
 * `mount_path_pseudo`: a v3 mount has the same path as a v4 one. `fsid_device`: see loop-devices.ts. CONFIG at INFO: the lines by which reload-log.ts
 * knows what is in force. No D-Bus is needed, so its complaints are silenced.
 */
export function renderCore(settings: ServerSettings, layout: Pick<Layout, 'recovery'>): string {
  return `NFS_CORE_PARAM {
  NFS_Port = ${settings.port};
  MNT_Port = ${settings.mountPort};
${settings.bindAddress === null ? '' : `  Bind_addr = ${settings.bindAddress};\n`}  Protocols = ${protocols(settings)};
  mount_path_pseudo = true;
  fsid_device = true;
  Enable_NLM = false;
  Enable_RQUOTA = false;
  Enable_UDP = false;
}
NFSV4 {
  Graceless = true;
  Delegations = false;
  Only_Numeric_Owners = true;
  RecoveryBackend = fs_ng;
  RecoveryRoot = "${layout.recovery}";
}
NFS_KRB5 { Active_krb5 = false; }
LOG {
  Default_Log_Level = EVENT;
  Components { CONFIG = INFO; DBUS = FATAL; }
}
`;
}

export function renderExport(spec: Spec, path: string, settings: ServerSettings): string {
  const blocks = accessRules(spec).map(
    ({ clients, mode }) =>
      `  CLIENT { Clients = ${clients.join(', ')}; Access_Type = ${mode === 'rw' ? 'RW' : 'RO'}; Protocols = ${protocols(settings)}; }\n`,
  );
  return `EXPORT {
  Export_Id = ${spec.exportId};
  Path = "${path}";
  Pseudo = "${exportPath(spec.id)}";
  Protocols = ${protocols(settings)};
  Transports = TCP;
  SecType = sys;
  Access_Type = NONE;
  Squash = ${spec.rootSquash ? 'root_squash' : 'no_root_squash'};
  Anonymous_uid = ${ANONYMOUS};
  Anonymous_gid = ${ANONYMOUS};
  FSAL { Name = VFS; }
${blocks.join('')}}
`;
}

function accessRules({ access }: Spec): { clients: string[]; mode: 'ro' | 'rw' }[] {
  const rules = new Map<string, { network: ReturnType<typeof parseNetwork>; mode: 'ro' | 'rw' }>();
  for (const { network: text, mode } of access) {
    const network = parseNetwork(text);
    rules.set(`${network.bytes}/${network.prefix}`, { network, mode });
  }
  return [...rules.values()]
    .sort((a, b) => bySpecificity(a.network, b.network))
    .map(({ network, mode }) => ({ clients: clientsOf(network), mode }));
}

function protocols({ version3 }: ServerSettings): string {
  return version3 ? '3,4' : '4';
}
