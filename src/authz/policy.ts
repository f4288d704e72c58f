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

export const policy = {
  createLoadBalancer: project('member'),
  listLoadBalancers: project('reader'),
  getLoadBalancer: project('reader'),
  updateLoadBalancer: project('member'),
  updateLoadBalancerV1: project('member'),
  deleteLoadBalancer: project('member'),
  resizeLoadBalancer: project('member'),
  failoverLoadBalancer: project('member'),
  getLoadBalancerMetrics: project('reader'),
  getLoadBalancerStatus: project('reader'),
  listLoadBalancerStatuses: project('reader'),
  checkLoadBalancerLimits: project('reader'),
  checkLoadBalancerLimitsBesides: project('reader'),
  createLoadBalancerMetadata: project('member'),
  replaceLoadBalancerMetadata: project('member'),
  deleteLoadBalancerMetadataItem: project('member'),
  createLoadBalancerMetadataV1: project('member'),
  listLoadBalancerMetadata: project('reader'),
  replaceLoadBalancerMetadataV1: project('member'),
  getLoadBalancerMetadataItem: project('reader'),
  deleteLoadBalancerMetadataItemV1: project('member'),

  createListener: project('member'),
  listListeners: project('reader'),
  getListener: project('reader'),
  updateListener: project('member'),
  updateListenerV1: project('member'),
  deleteListener: project('member'),

  createLbPool: project('member'),
  listLbPools: project('reader'),
  getLbPool: project('reader'),
  updateLbPool: project('member'),
  updateLbPoolV1: project('member'),
  deleteLbPool: project('member'),
  createLbPoolHealthMonitor: project('member'),
  getLbPoolHealthMonitor: project('reader'),
  updateLbPoolHealthMonitor: project('member'),
  deleteLbPoolHealthMonitor: project('member'),
  createLbPoolMember: project('member'),
  deleteLbPoolMember: project('member'),
  addLbPoolMember: project('member'),
  listLbPoolMembers: project('reader'),
  replaceLbPoolMembers: project('member'),
  getLbPoolMember: project('reader'),
  updateLbPoolMember: project('member'),
  removeLbPoolMember: project('member'),
} as const satisfies Record<string, Rule>;

export type Operation = keyof typeof policy;
