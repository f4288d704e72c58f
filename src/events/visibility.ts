/** Which events a token receives: those of resources that it can read. */
import { atLeast } from '../authz/actor.ts';
import type { Actor } from '../authz/actor.ts';
import { concernsAllProjects, seesAllClients } from '../authz/access.ts';
import type { Access } from '../authz/access.ts';
import type { EventSource, ResourceEvent } from './source.ts';

/** The access of each kind. */
export function accessOfKinds(sources: readonly EventSource[]): Map<string, Access> {
  return new Map(sources.map(({ kind, access }) => [kind, access]));
}

/** The same rules as for requests (http/authorization.ts). */
export function mayRead(actor: Actor, access: Access, event: ResourceEvent): boolean {
  if (!atLeast(actor, access.role)) return false;
  const { client_id: clientId, project_id: projectId } = event;
  if (projectId !== null) {
    return clientId === actor.clientId && (actor.projectIds === null || actor.projectIds.includes(projectId));
  }
  if (actor.projectIds && concernsAllProjects(access)) return false;
  if (access.reach === 'operator') return actor.operator;
  if (clientId === null) return true;
  return clientId === actor.clientId || seesAllClients(actor);
}
