/** What a resource declares about its tables, so that their changes become events. */
import type { Access } from '../authz/access.ts';

export interface EventSource {
  table: string;
  /** The kind of the resource, as events name it: singular, snake case. */
  kind: string;
  /** The access of the operation that reads the resource: only tokens with it receive the event. */
  access: Access;
  /** SQL over the row `r`: the ID of the resource. Default: `r.id`. */
  id?: string;
  /** SQL over the row `r`: the ID of its project, or null. Default: its column `project_id`, if it has one. */
  project?: string;
  /** SQL over the row `r`: the ID of the resource whose task changes it. Default: the ID of the resource. */
  taskResource?: string;
  /** An update of other columns is not an event. Default: all columns. */
  columns?: readonly string[];
  /** Clients no longer see a row with `deleted_at`. */
  softDelete?: boolean;
  /** Every change of a row is an update of the resource. */
  updatesOnly?: boolean;
  /**
   * Only housekeeping deletes its rows, long after their end. That is not an event: the first removal after months would
   * evict all other events from the ring.
   */
  silentRemoval?: boolean;
  /** Its rows are parts of a row `r` of this table, and a change of one is an update of that. `id`: SQL over the part `c`. */
  owner?: { table: string; id: string };
}

export type Change = 'created' | 'updated' | 'deleted';

/** A change of a resource. Ids of client, project and region are null where the resource belongs to none. */
export interface ResourceEvent {
  /** Opaque; unique, and the same on all servers. */
  id: string;
  kind: string;
  resource_id: string;
  change: Change;
  client_id: number | null;
  project_id: number | null;
  region_id: number | null;
  /** The task that the change belongs to. */
  task_id: string | null;
  /** UTC. */
  at: string;
}
