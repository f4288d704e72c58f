/**
 * Renders the configuration of Ganesha; pure. Ganesha reads the core settings only when it starts, and the exports again at
 * every SIGHUP. Access is denied by default: the access of an export is NONE, and rules are CLIENT blocks, of which the first
 * match applies. Duplicate networks: the last rule wins.
 */
import { inBrackets, type Network } from '../../platform/network-address.ts';
import type { Layout } from './layout.ts';
import { accessNetwork, bySpecificity, clientsOf } from './networks.ts';
import type { Spec } from './specs.ts';

export interface ServerSettings {
  /** Null: every address. */
  bindAddress: string | null;
  port: number;
  mountPort: number;
  /** Serve NFSv3 in addition to NFSv4; needs rpcbind. */
  version3: boolean;
}

const ANONYMOUS = 65_534;

/** The path of a share for clients, which is its place in the pseudo filesystem of NFSv4. */
export function exportPath(id: string): string {
  return `/shares/${id}`;
}

/** `host:/path`, as clients mount a share. */
export function connectionPoint(host: string, id: string): string {
  return `${inBrackets(host)}:${exportPath(id)}`;
}

/**
 * `mount_path_pseudo`: NFSv3 and NFSv4 mounts have the same path. `fsid_device`: see loop-devices.ts. CONFIG at INFO:
 * reload-log.ts reads these lines. DBUS at FATAL: D-Bus is not needed, so its errors are silenced.
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

/** The export of a share of this host. `path`: its folder as Ganesha sees it. @throws DriverError, as `accessNetwork` */
export function renderExport(spec: Spec, path: string, settings: ServerSettings): string {
  return exportBlock({ ...spec, path, protocols: protocols(settings), fsal: 'Name = VFS;' });
}

/** An export of any storage. */
interface ExportBlock extends Pick<Spec, 'id' | 'exportId' | 'rootSquash' | 'access'> {
  path: string;
  protocols: string;
  /** Parameters of the storage. */
  fsal: string;
  /** CLIENT blocks before those of the access rules. */
  firstClients?: string;
}

/** @throws DriverError for networks that Ganesha's configuration cannot hold (networks.ts) */
export function exportBlock(block: ExportBlock): string {
  const { protocols, firstClients = '' } = block;
  const blocks = accessRules(block).map(
    ({ clients, mode }) =>
      `  CLIENT { Clients = ${clients.join(', ')}; Access_Type = ${mode === 'rw' ? 'RW' : 'RO'}; Protocols = ${protocols}; }\n`,
  );
  return `EXPORT {
  Export_Id = ${block.exportId};
  Path = "${block.path}";
  Pseudo = "${exportPath(block.id)}";
  Protocols = ${protocols};
  Transports = TCP;
  SecType = sys;
  Access_Type = NONE;
  Squash = ${block.rootSquash ? 'root_squash' : 'no_root_squash'};
  Anonymous_uid = ${ANONYMOUS};
  Anonymous_gid = ${ANONYMOUS};
  FSAL { ${block.fsal} }
${firstClients}${blocks.join('')}}
`;
}

function accessRules({ access }: Pick<Spec, 'access'>): { clients: string[]; mode: 'ro' | 'rw' }[] {
  const rules = new Map<string, { network: Network; mode: 'ro' | 'rw' }>();
  for (const { network: text, mode } of access) {
    const network = accessNetwork(text);
    rules.set(network.join('/'), { network, mode });
  }
  return [...rules.values()]
    .sort((a, b) => bySpecificity(a.network, b.network))
    .map(({ network, mode }) => ({ clients: clientsOf(network), mode }));
}

function protocols({ version3 }: ServerSettings): string {
  return version3 ? '3,4' : '4';
}
