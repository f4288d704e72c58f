/** Which events a token receives: those of resources that it can read. */
import { type Actor, atLeast } from '../authz/actor.ts';
import { type Access, concernsAllProjects, seesAllClients } from '../authz/access.ts';
import type { EventSource, ResourceEvent } from './source.ts';

/** The access of each kind. */
export function accessOfKinds(sources: readonly EventSource[]): Map<string, Access> {
  return new Map(sources.map(({ kind, access }) => [kind, access]));
}

/** The same rules as for requests (http/authorization.ts). */
export function mayRead(actor: Actor, access: Access, event: ResourceEvent): boolean {
  if (!atLeast(actor, access.role)) return false;
  const { client_id: clientId, project_id: projectId } = event;
  const isOwn = clientId === actor.clientId;
  if (projectId !== null) {
    if (actor.projectIds && !actor.projectIds.includes(projectId)) return false;
    if (access.reach !== 'client') return isOwn;
  }
  if (actor.projectIds && concernsAllProjects(access)) return false;
  if (access.reach === 'operator') return actor.operator;
  if (clientId === null) return true;
  return isOwn || seesAllClients(actor);
}
