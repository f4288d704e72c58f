/**
 * The access rule of an operation: its reach (the part of the path that must belong to the caller's client) and the role
 * that the token needs. Every operation declares one rule; policy.txt lists them all.
 */
import { type Actor, atLeast, type Role } from './actor.ts';

/**
 * - `public`: no token.
 * - `token`: any token; the service limits the answer to the token's client.
 * - `project`: the path names a project of the token's client that the token may see, and perhaps a region.
 * - `client`: the path names the token's client, or the token is an operator's admin.
 * - `operator`: an admin token of the client that operates this Cloudyard.
 */
type Reach = 'public' | 'token' | 'project' | 'client' | 'operator';

export interface Access {
  readonly reach: Reach;
  readonly role: Role;
}

const access = (reach: Reach, role: Role): Access => ({ reach, role });

export const everyone = access('public', 'reader');
export const tokenReader = access('token', 'reader');
export const tokenMember = access('token', 'member');
export const tokenAdmin = access('token', 'admin');
export const projectReader = access('project', 'reader');
export const projectMember = access('project', 'member');
export const projectAdmin = access('project', 'admin');
export const clientReader = access('client', 'reader');
export const clientMember = access('client', 'member');
export const clientAdmin = access('client', 'admin');
export const operatorAdmin = access('operator', 'admin');

/** Whether an operation affects all projects of a client, which share its webhooks, addresses and thresholds. */
export function concernsAllProjects({ reach, role }: Access): boolean {
  return reach === 'operator' || (reach === 'client' && role !== 'reader');
}

/** Whether a token may call operations on any client. */
export function seesAllClients(actor: Actor): boolean {
  return actor.operator && atLeast(actor, 'admin') && !actor.projectIds;
}
