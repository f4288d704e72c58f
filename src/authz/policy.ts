/**
 * Who may do what: one line an operation, and no route without a line (the app refuses to start, and the coverage test
 * tries every route with no token, a bad one, one of another client and one that only reads).
 */
import type { Role } from './actor.ts';

/**
 * - `public`: no token.
 * - `token`: any token; the service shows only what is the client's.
 * - `project`: the path names a project of the token's client that the token may see, and perhaps a region.
 * - `client`: the path names the token's client, or the token is an operator's admin.
 * - `operator`: an admin token of the client that runs this Cloudyard.
 */
export type Reach = 'public' | 'token' | 'project' | 'client' | 'operator';

export interface Rule {
  reach: Reach;
  role: Role;
}

const rule = (reach: Reach) => (role: Role) => ({ reach, role });
const project = rule('project');
const token = rule('token');
const client = rule('client');
const everyone: Rule = { reach: 'public', role: 'reader' };
const operator: Rule = { reach: 'operator', role: 'admin' };

export const policy = {
  getIndex: everyone,
  getHealth: everyone,
  getReadiness: everyone,
  getDriverHealth: everyone,
  getMetrics: everyone,
  getOpenApi: everyone,

  // In the protocols of registries: they check credentials of their own.
  getRegistryToken: everyone,
  createRegistryToken: everyone,
  receiveRegistryEvents: everyone,

  listTasks: token('reader'),
  listActiveTasks: project('reader'),
  getTask: token('reader'),
  getTaskShort: token('reader'),
  acknowledgeTask: token('member'),
  acknowledgeAllTasks: token('member'),
  acknowledgeTasks: token('member'),

  createProject: token('admin'),
  listProjects: token('reader'),
  getProject: project('reader'),
  updateProject: project('admin'),
  replaceProject: project('admin'),
  deleteProject: project('admin'),

  listRegions: token('reader'),
  getRegion: token('reader'),

  createNetwork: project('member'),
  listNetworks: project('reader'),
  getNetwork: project('reader'),
  updateNetwork: project('member'),
  updateNetworkV1: project('member'),
  replaceNetworkMetadata: project('member'),
  deleteNetwork: project('member'),

  createSubnet: project('member'),
  listSubnets: project('reader'),
  getSubnet: project('reader'),
  updateSubnet: project('member'),
  replaceSubnetMetadata: project('member'),
  deleteSubnet: project('member'),

  createSecret: project('member'),
  createSecretV1: project('member'),
  listSecrets: project('reader'),
  getSecret: project('reader'),
  deleteSecret: project('member'),

  createFileShare: project('member'),
  listFileShares: project('reader'),
  getFileShare: project('reader'),
  updateFileShare: project('member'),
  updateFileShareV1: project('member'),
  deleteFileShare: project('member'),
  extendFileShare: project('member'),
  createFileShareAccessRule: project('member'),
  listFileShareAccessRules: project('reader'),
  deleteFileShareAccessRule: project('member'),
  checkFileShareLimits: project('reader'),
  createFileShareMetadata: project('member'),
  listFileShareMetadata: project('reader'),
  replaceFileShareMetadata: project('member'),
  getFileShareMetadataItem: project('reader'),
  deleteFileShareMetadataItem: project('member'),

  createLifecyclePolicy: project('member'),
  listLifecyclePolicies: project('reader'),
  getLifecyclePolicy: project('reader'),
  updateLifecyclePolicy: project('member'),
  deleteLifecyclePolicy: project('member'),
  addLifecyclePolicySchedules: project('member'),
  removeLifecyclePolicySchedules: project('member'),
  addLifecyclePolicyVolumes: project('member'),
  removeLifecyclePolicyVolumes: project('member'),
  listLifecyclePolicyRuns: project('reader'),
  previewLifecyclePolicySchedule: project('reader'),
  estimateLifecyclePolicyUsage: project('reader'),
  previewLifecyclePolicyPrice: project('reader'),
  previewLifecyclePolicyPriceV1: project('reader'),

  moveClock: operator,
  createFault: operator,
  listFaults: operator,
  clearFaults: operator,

  listClientQuotas: token('reader'),
  getGlobalQuotas: client('reader'),
  getRegionalQuotas: client('reader'),
  updateClientQuotas: operator,
  getNotificationThreshold: client('reader'),
  setNotificationThreshold: client('member'),
  deleteNotificationThreshold: client('member'),

  getClient: client('reader'),
  updateClient: client('admin'),
  createWebhook: client('admin'),
  listWebhooks: client('member'),
  getWebhook: client('member'),
  deleteWebhook: client('admin'),
  listNotifications: client('reader'),
  getNotification: client('reader'),
  replayDelivery: client('member'),

  createRegistry: project('member'),
  listRegistries: project('reader'),
  getRegistry: project('reader'),
  deleteRegistry: project('member'),
  resizeRegistry: project('member'),
  checkRegistryLimits: project('reader'),
  createRegistryUser: project('member'),
  createRegistryUsers: project('member'),
  listRegistryUsers: project('reader'),
  updateRegistryUser: project('member'),
  deleteRegistryUser: project('member'),
  refreshRegistryUserSecret: project('member'),
  listRegistryRepositories: project('reader'),
  deleteRegistryRepository: project('member'),
  listRegistryArtifacts: project('reader'),
  deleteRegistryArtifact: project('member'),
  deleteRegistryTag: project('member'),

  createApiKey: project('member'),
  listApiKeys: project('reader'),
  getApiKey: project('reader'),
  updateApiKey: project('member'),
  deleteApiKey: project('member'),
  // The API key is the credential.
  authorizeContainer: everyone,
  authorizeContainerByPath: everyone,

  createPullSecret: project('member'),
  listPullSecrets: project('reader'),
  getPullSecret: project('reader'),
  updatePullSecret: project('member'),
  deletePullSecret: project('member'),
  verifyPullSecret: project('member'),
  getPullSecretDockerConfigJson: project('member'),

  listAudit: token('admin'),
} as const satisfies Record<string, Rule>;

export type Operation = keyof typeof policy;
