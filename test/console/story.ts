/**
 * All operations of openapi.json that change something, in an order in which they can be used. A path parameter gets the
 * identifier that an earlier step saved under its name. Operations without a step here are played with their examples.
 */
import type { Json } from '../../console/src/code/request.ts';
import { aCertificate, aKey, keyPemOf } from '../../src/resources/secrets/test-certificates.ts';
import { operations } from './operations.ts';

export interface Step {
  operation: string;
  /** Default: the example of openapi.json. In strings, `$name` is a saved identifier. */
  body?: Json;
  /** Replaces saved identifiers. */
  params?: Record<string, string | number>;
  query?: Record<string, string | number | boolean>;
  /** Saves the identifier of the new item of a list, by default of the list that the operation adds to. */
  save?: string;
  list?: string;
  /** The operator sends it. */
  operator?: true;
  /** The status of a request that the server refuses. Default: it succeeds. */
  refused?: number;
}

const awkward = `it's "a" \\ 😀 \u05e9\u05dc\u05d5\u05dd <b> \${x} $(id)`;
const tags: Json = { team: awkward };
const key = aKey('rsa');
const certificate = aCertificate({ key });
const payload = { certificate: certificate.pem, certificate_chain: '', private_key: keyPemOf(key) };
const cron = { type: 'cron', hour: '3', timezone: 'Europe/Luxembourg', max_quantity: 2 };
const member = { address: '10.0.0.11', protocol_port: 8080 };

const projects: Step[] = [
  { operation: 'createProject', body: { name: 'other', description: awkward }, save: 'other_project' },
  { operation: 'updateProject', params: { project_id: '$other_project' } },
  { operation: 'replaceProject', params: { project_id: '$other_project' } },
  { operation: 'deleteProject', params: { project_id: '$other_project' } },
];

const networks: Step[] = [
  { operation: 'createNetwork', body: { name: 'my-network', tags }, save: 'network_id' },
  { operation: 'updateNetwork', body: { name: 'a-network', tags: { team: null, stage: 'test' } } },
  { operation: 'updateNetworkV1' },
  { operation: 'createNetworkMetadata', body: tags },
  { operation: 'replaceNetworkMetadata' },
  { operation: 'deleteNetworkMetadataItem', query: { key: 'team' } },
  {
    operation: 'createSubnet',
    body: { name: 'my-subnet', network_id: '$network_id', cidr: '192.168.10.0/24', metadata: tags },
    save: 'subnet_id',
  },
  { operation: 'updateSubnet', body: { name: 'renamed-subnet', gateway_ip: null } },
  { operation: 'createSubnetMetadata', body: tags },
  { operation: 'replaceSubnetMetadata' },
  { operation: 'deleteSubnetMetadataItem', query: { key: 'team' } },
];

const fileShares: Step[] = [
  { operation: 'checkFileShareLimits' },
  { operation: 'previewFileSharePrice' },
  {
    operation: 'createFileShare',
    body: { name: 'my-share', protocol: 'NFS', size: 1, network: { network_id: '$network_id' }, tags },
    save: 'file_share_id',
  },
  { operation: 'createFileShareAccessRule', save: 'access_rule_id' },
  { operation: 'updateFileShare' },
  { operation: 'updateFileShareV1', body: { name: 'a-share' } },
  { operation: 'extendFileShare' },
  { operation: 'extendFileShare', body: { size: 1 }, refused: 400 },
  { operation: 'createFileShareMetadata', body: tags },
  { operation: 'replaceFileShareMetadata' },
  { operation: 'deleteFileShareMetadataItem', query: { key: 'team' } },
  { operation: 'deleteFileShareAccessRule' },
  { operation: 'deleteFileShare' },
];

const loadBalancers: Step[] = [
  { operation: 'checkLoadBalancerLimits', body: {} },
  { operation: 'previewLoadBalancerPrice' },
  { operation: 'previewLoadBalancerPriceV1' },
  { operation: 'createLoadBalancer', body: { name: 'balancer', tags }, save: 'load_balancer_id' },
  { operation: 'checkLoadBalancerLimitsBesides', body: {} },
  { operation: 'updateLoadBalancer' },
  { operation: 'updateLoadBalancerV1', body: { name: 'a-balancer' } },
  { operation: 'resizeLoadBalancer' },
  { operation: 'failoverLoadBalancer' },
  { operation: 'getLoadBalancerMetrics' },
  { operation: 'createLoadBalancerMetadata', body: tags },
  { operation: 'replaceLoadBalancerMetadata' },
  { operation: 'deleteLoadBalancerMetadataItem', query: { key: 'team' } },
  { operation: 'createLoadBalancerMetadataV1', body: tags },
  { operation: 'replaceLoadBalancerMetadataV1' },
  { operation: 'deleteLoadBalancerMetadataItemV1', query: { key: 'team' } },
  {
    operation: 'createListener',
    body: { name: 'web', protocol: 'HTTP', protocol_port: 80, loadbalancer_id: '$load_balancer_id' },
    save: 'listener_id',
  },
  { operation: 'updateListener' },
  { operation: 'updateListenerV1' },
  {
    operation: 'createLbPool',
    body: { name: 'pages', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', listener_id: '$listener_id' },
    save: 'pool_id',
  },
  { operation: 'updateLbPool' },
  { operation: 'updateLbPoolV1', body: { lb_algorithm: 'ROUND_ROBIN' } },
  { operation: 'createLbPoolHealthMonitor' },
  { operation: 'updateLbPoolHealthMonitor', body: { delay: 20, timeout: 6 } },
  { operation: 'deleteLbPoolHealthMonitor' },
  { operation: 'addLbPoolMember', save: 'member_id' },
  { operation: 'updateLbPoolMember' },
  { operation: 'removeLbPoolMember' },
  { operation: 'createLbPoolMember', save: 'member_id', list: 'listLbPoolMembers' },
  { operation: 'deleteLbPoolMember' },
  { operation: 'replaceLbPoolMembers', body: [member, { ...member, address: '10.0.0.12', backup: true }] },
  {
    operation: 'createL7Policy',
    body: { action: 'REDIRECT_PREFIX', listener_id: '$listener_id', redirect_prefix: 'https://www.example.com' },
    save: 'l7policy_id',
  },
  { operation: 'updateL7Policy' },
  { operation: 'replaceL7Policy', body: { action: 'REJECT' } },
  { operation: 'createL7Rule', save: 'l7rule_id' },
  { operation: 'updateL7Rule', body: { type: 'PATH', compare_type: 'STARTS_WITH', value: '/it\'s "/', invert: true } },
  { operation: 'updateL7Rule' },
  { operation: 'deleteL7Rule' },
  { operation: 'deleteL7Policy' },
  { operation: 'deleteLbPool' },
  { operation: 'deleteListener' },
  { operation: 'deleteLoadBalancer' },
  { operation: 'createLoadBalancer', save: 'load_balancer_id' },
  { operation: 'deleteLoadBalancer' },
];

const instance = { refused: 400 };

const volumes: Step[] = [
  { operation: 'previewVolumePrice' },
  { operation: 'createVolume', save: 'volume_id' },
  { operation: 'updateVolume' },
  { operation: 'extendVolume' },
  { operation: 'retypeVolume', body: { volume_type: 'ssd_hiiops' } },
  { operation: 'createVolumeMetadata', body: tags },
  { operation: 'replaceVolumeMetadata' },
  { operation: 'deleteVolumeMetadataItem', query: { key: 'team' } },
  { operation: 'attachVolume', ...instance },
  { operation: 'attachVolumeV1', ...instance },
  { operation: 'detachVolume', ...instance },
  { operation: 'detachVolumeV1', ...instance },
  { operation: 'previewSnapshotPrice', body: { volume_id: '$volume_id' } },
  { operation: 'createSnapshot', body: { name: 'before', volume_id: '$volume_id', tags }, save: 'snapshot_id' },
  { operation: 'updateSnapshot', body: { name: 'renamed-snapshot', tags: { team: null } } },
  { operation: 'createSnapshotMetadata', body: tags },
  { operation: 'replaceSnapshotMetadata' },
  { operation: 'deleteSnapshotMetadataItem', query: { key: 'team' } },
  { operation: 'revertVolume' },
];

const policy: Json = { action: 'volume_snapshot', name: 'nightly', schedules: [cron], volume_ids: ['$volume_id'] };

const lifecyclePolicies: Step[] = [
  { operation: 'previewLifecyclePolicySchedule', body: { schedule: cron, from: '2030-01-01T00:00:00Z', count: 2 } },
  { operation: 'estimateLifecyclePolicyUsage', body: policy },
  { operation: 'previewLifecyclePolicyPrice', body: { schedules: [cron], volume_ids: ['$volume_id'] } },
  { operation: 'previewLifecyclePolicyPriceV1', body: policy },
  {
    operation: 'createLifecyclePolicy',
    body: { ...policy, volume_ids: [] },
    query: { need_volumes: true },
    save: 'policy_id',
  },
  { operation: 'addLifecyclePolicySchedules', save: 'schedule_id', list: 'getLifecyclePolicy' },
  { operation: 'updateLifecyclePolicySchedule' },
  { operation: 'updateLifecyclePolicy' },
  { operation: 'addLifecyclePolicyVolumes', body: { volume_ids: ['$volume_id'] }, query: { need_volumes: true } },
  { operation: 'updateLifecyclePolicy', body: { status: 'active' } },
  { operation: 'runLifecyclePolicy', body: { schedule_ids: ['$schedule_id'] } },
  { operation: 'removeLifecyclePolicyVolumes', body: { volume_ids: ['$volume_id'] } },
  { operation: 'removeLifecyclePolicySchedules', body: { schedule_ids: ['$schedule_id'] } },
  { operation: 'deleteLifecyclePolicy' },
  { operation: 'deleteSnapshot' },
  { operation: 'deleteVolume', query: { snapshots: '' } },
];

const artifact = { params: { repository_name: "it's/a b", digest: `sha256:${'0'.repeat(64)}`, tag_name: 'v1' } };

const registries: Step[] = [
  { operation: 'checkRegistryLimits' },
  { operation: 'createRegistry', save: 'registry_id' },
  { operation: 'resizeRegistry' },
  { operation: 'createRegistryUser', save: 'user_id' },
  { operation: 'updateRegistryUser' },
  { operation: 'refreshRegistryUserSecret' },
  { operation: 'createRegistryUsers', body: { users: [{ name: 'deploy', duration: -1, read_only: true }] } },
  { operation: 'deleteRegistryUser' },
  { operation: 'deleteRegistryRepository', ...artifact, refused: 404 },
  { operation: 'deleteRegistryArtifact', ...artifact, refused: 404 },
  { operation: 'deleteRegistryTag', ...artifact, refused: 404 },
  { operation: 'deleteRegistry' },
];

const secrets: Step[] = [
  { operation: 'createSecret', body: { name: 'certificate', payload }, save: 'secret_id', list: 'listSecrets' },
  { operation: 'deleteSecret' },
  { operation: 'createSecretV1', save: 'secret_id' },
  { operation: 'deleteSecret' },
  {
    operation: 'createApiKey',
    body: { name: 'first-key', containers: [{ name: 'web', namespace: 'default' }], description: awkward },
  },
  { operation: 'updateApiKey', params: { key_name: 'first-key' } },
  { operation: 'deleteApiKey', params: { key_name: 'first-key' } },
  { operation: 'createPullSecret', body: { name: 'hub', registry: '127.0.0.1:9', login: 'ci', password: awkward } },
  { operation: 'updatePullSecret', params: { secret_name: 'hub' }, body: { password: `new ${awkward}` } },
  { operation: 'verifyPullSecret', params: { secret_name: 'hub' } },
  { operation: 'deletePullSecret', params: { secret_name: 'hub' } },
];

const clients: Step[] = [
  // A client cannot be deleted, and its name is unique.
  { operation: 'createClient', refused: 403 },
  { operation: 'createToken', save: 'token_id' },
  { operation: 'revokeToken' },
  { operation: 'updateClientQuotas', operator: true },
  ...['deleteQuotaRequest', 'approveQuotaRequest', 'declineQuotaRequest'].flatMap((operation): Step[] => [
    { operation: 'createQuotaRequest', save: 'request_id' },
    { operation, ...(operation !== 'deleteQuotaRequest' && { operator: true }) },
  ]),
  { operation: 'setNotificationThreshold' },
  { operation: 'deleteNotificationThreshold' },
  { operation: 'updateClient' },
  { operation: 'createWebhook', save: 'webhook_id' },
  { operation: 'updateWebhook' },
  {
    operation: 'replayDelivery',
    params: { notification_id: 1, delivery_id: 1 },
    refused: 404,
  },
  { operation: 'deleteWebhook' },
  { operation: 'subscribeToUserActions' },
  { operation: 'replayUserActionDelivery', params: { user_action_id: 1 }, refused: 404 },
  { operation: 'unsubscribeFromUserActions' },
];

const host = { host_name: 'host-1' };
const unknownTask = { task_id: '00000000-0000-4000-8000-000000000000' };

const others: Step[] = [
  { operation: 'acknowledgeTask', params: unknownTask, refused: 404 },
  { operation: 'acknowledgeTasks' },
  { operation: 'acknowledgeAllTasks', query: { project_id: '$project_id' } },
  { operation: 'moveClock', body: { advance_seconds: 1 }, operator: true },
  { operation: 'createFault', operator: true, save: 'fault_id' },
  { operation: 'deleteFault', operator: true },
  { operation: 'clearFaults', operator: true },
  // The region has one host.
  { operation: 'drainHost', params: host, operator: true, refused: 404 },
  { operation: 'undrainHost', params: host, operator: true, refused: 404 },
  { operation: 'forgetHost', params: host, operator: true, refused: 404 },
  // The console's own; a token is enough for scripts.
  { operation: 'createSession', refused: 401 },
  { operation: 'deleteSession', refused: 401 },
  { operation: 'startDeviceSignIn', refused: 404 },
  { operation: 'finishDeviceSignIn', refused: 404 },
  { operation: 'createRegistryToken', refused: 400 },
  { operation: 'receiveRegistryEvents', refused: 401 },
];

const written: Step[] = [
  ...projects,
  ...networks,
  ...fileShares,
  ...loadBalancers,
  ...volumes,
  ...lifecyclePolicies,
  ...registries,
  ...secrets,
  { operation: 'deleteSubnet' },
  { operation: 'deleteNetwork' },
  ...clients,
  ...others,
];

/** Operations without a step above, today none: the examples of openapi.json create, change and delete a resource. */
export const derived: Step[] = operations
  .filter(({ id }) => !written.some(({ operation }) => operation === id))
  .map(({ id, method, path, params }) => {
    const item = method === 'post' && operations.find((other) => other.path.startsWith(`${path}/{`));
    return { operation: id, method, ...(item && { save: item.params[params.length]! }) };
  })
  .sort((a, b) => turnOf(a) - turnOf(b));

function turnOf({ method, save }: { method: string; save?: string }): number {
  if (save !== undefined) return 0;
  return method === 'delete' ? 2 : 1;
}

export const story: Step[] = [...written, ...derived];
