/**
 * The official names of operations and of tables: which entries of the audit log are user actions, and what they change.
 * An operation that is not listed here (webhooks, thresholds, acknowledged tasks …) has no official name and is not a
 * user action; the audit log has it.
 */

export const actionTypes = [
  ...['activate', 'attach', 'change_logging_resources', 'create', 'create_access_rule', 'deactivate', 'delete'],
  ...['delete_access_rule', 'delete_metadata', 'detach', 'disable_logging', 'disable_portsecurity', 'download'],
  ...['enable_logging', 'enable_portsecurity', 'failover', 'get_certificate', 'get_console', 'get_kubeconfig'],
  ...['get_logs', 'put_into_servergroup', 'reboot', 'reboot_hard', 'rebuild', 'regenerate_credentials'],
  ...['remove_from_servergroup', 'replace', 'replace_metadata', 'resize', 'resume', 'retype', 'revert', 'scale_down'],
  ...['scale_up', 'start', 'stop', 'suspend', 'update', 'update_metadata', 'upgrade'],
] as const;
type ActionType = (typeof actionTypes)[number];

export const apiGroups = [
  ...['ai_cluster', 'baremetal', 'basic_vm', 'caas_container', 'caas_key', 'caas_pull_secret', 'dbaas_postgres'],
  ...['ddos_profile', 'faas_function', 'faas_key', 'faas_namespace', 'file_shares', 'floating_ip', 'image'],
  ...['inference_at_the_edge', 'instance', 'instance_isolation', 'k8s_cluster', 'k8s_cluster_template', 'k8s_pool'],
  ...['laas', 'laas_topic', 'lb_health_monitor', 'lb_l7policy', 'lb_l7rule', 'lblistener', 'lbpool', 'lbpool_member'],
  ...['lifecycle_policy', 'lifecycle_policy_volume_member', 'loadbalancer', 'network', 'port', 'project'],
  ...['quota_limit_request', 'registry', 'reservation', 'reserved_fixed_ip', 'role', 'router', 'rtbh', 'secret'],
  ...['securitygroup', 'securitygrouprule', 'servergroup', 'shared_flavor', 'shared_image', 'shared_network', 'slurm'],
  ...['snapshot', 'snapshot_schedule', 'ssh_key', 'subnet', 'user', 'vip_ip_addresses', 'volume'],
] as const;
type ApiGroup = (typeof apiGroups)[number];

const metadata = (noun: string, suffix = '') =>
  ({
    [`create${noun}Metadata${suffix}`]: 'update_metadata',
    [`replace${noun}Metadata${suffix}`]: 'replace_metadata',
    [`delete${noun}MetadataItem${suffix}`]: 'delete_metadata',
  }) as const;

/** For a noun that can be created, updated and deleted. */
const crud = (noun: string) => ({
  [`create${noun}`]: 'create',
  [`update${noun}`]: 'update',
  [`delete${noun}`]: 'delete',
});

const operationsByGroup: Partial<Record<ApiGroup, Record<string, string>>> = {
  caas_key: crud('ApiKey'),
  caas_pull_secret: crud('PullSecret'),
  file_shares: {
    ...crud('FileShare'),
    updateFileShareV1: 'update',
    createFileShareAccessRule: 'create_access_rule',
    deleteFileShareAccessRule: 'delete_access_rule',
    extendFileShare: 'resize',
    ...metadata('FileShare'),
  },
  lb_health_monitor: crud('LbPoolHealthMonitor'),
  lb_l7policy: { ...crud('L7Policy'), replaceL7Policy: 'replace' },
  lb_l7rule: crud('L7Rule'),
  lblistener: { ...crud('Listener'), updateListenerV1: 'update' },
  lbpool: { ...crud('LbPool'), updateLbPoolV1: 'update' },
  lbpool_member: {
    ...crud('LbPoolMember'),
    addLbPoolMember: 'create',
    removeLbPoolMember: 'delete',
    replaceLbPoolMembers: 'replace',
  },
  lifecycle_policy: crud('LifecyclePolicy'),
  lifecycle_policy_volume_member: { addLifecyclePolicyVolumes: 'create', removeLifecyclePolicyVolumes: 'delete' },
  loadbalancer: {
    ...crud('LoadBalancer'),
    updateLoadBalancerV1: 'update',
    failoverLoadBalancer: 'failover',
    resizeLoadBalancer: 'resize',
    ...metadata('LoadBalancer'),
    ...metadata('LoadBalancer', 'V1'),
  },
  network: { ...crud('Network'), updateNetworkV1: 'update', ...metadata('Network') },
  project: { ...crud('Project'), replaceProject: 'replace' },
  quota_limit_request: {
    createQuotaRequest: 'create',
    deleteQuotaRequest: 'delete',
    approveQuotaRequest: 'update',
    declineQuotaRequest: 'update',
  },
  registry: {
    createRegistry: 'create',
    deleteRegistry: 'delete',
    resizeRegistry: 'resize',
    deleteRegistryRepository: 'delete',
    deleteRegistryArtifact: 'delete',
    deleteRegistryTag: 'delete',
    ...crud('RegistryUser'),
    createRegistryUsers: 'create',
    refreshRegistryUserSecret: 'regenerate_credentials',
  },
  secret: { createSecret: 'create', createSecretV1: 'create', deleteSecret: 'delete' },
  snapshot: { ...crud('Snapshot'), ...metadata('Snapshot') },
  snapshot_schedule: {
    addLifecyclePolicySchedules: 'create',
    updateLifecyclePolicySchedule: 'update',
    removeLifecyclePolicySchedules: 'delete',
  },
  subnet: { ...crud('Subnet'), ...metadata('Subnet') },
  volume: {
    ...crud('Volume'),
    extendVolume: 'resize',
    retypeVolume: 'retype',
    revertVolume: 'revert',
    attachVolume: 'attach',
    detachVolume: 'detach',
    attachVolumeV1: 'attach',
    detachVolumeV1: 'detach',
    ...metadata('Volume'),
  },
};

interface OfficialName {
  action: ActionType;
  group: ApiGroup;
}

/** By operationId. */
const officialNames = new Map<string, OfficialName>(
  Object.entries(operationsByGroup).flatMap(([group, operations]) =>
    Object.entries(operations).map(([operation, action]) => [
      operation,
      { action: action as ActionType, group: group as ApiGroup },
    ]),
  ),
);

/** Undefined for an operation that is not a user action. */
export const officialNameOf = (operation: string): OfficialName | undefined => officialNames.get(operation);

/** The operations that are user actions of these types and groups; undefined: of all. */
export function officialOperations(actions?: ActionType[], groups?: ApiGroup[]): string[] {
  return [...officialNames]
    .filter(([, { action }]) => actions?.includes(action) ?? true)
    .filter(([, { group }]) => groups?.includes(group) ?? true)
    .map(([operation]) => operation);
}

/** The official type of the resource in a table; changes of other tables are not shown. */
export const resourceTypes: Record<string, string> = {
  api_keys: 'caas_key',
  file_shares: 'file_shares',
  lb_l7_policies: 'lb_l7policy',
  lb_l7_rules: 'lb_l7rule',
  lb_listeners: 'lblistener',
  lb_members: 'lbpool_member',
  lb_pools: 'lbpool',
  lifecycle_policies: 'lifecycle_policy',
  lifecycle_policy_schedules: 'snapshot_schedule',
  lifecycle_policy_volumes: 'lifecycle_policy_volume_member',
  load_balancers: 'loadbalancer',
  networks: 'network',
  projects: 'project',
  pull_secrets: 'caas_pull_secret',
  quota_requests: 'quota_limit_request',
  registries: 'registry',
  registry_artifacts: 'registry_repository_artifact',
  registry_repositories: 'registry_repository',
  registry_tags: 'registry_repository_tag',
  registry_users: 'registry_user',
  secrets: 'secret',
  snapshots: 'snapshot',
  subnets: 'subnet',
  volumes: 'volume',
};
