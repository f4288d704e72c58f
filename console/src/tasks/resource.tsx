import { useQueries } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { fileSharesQuery } from '../file-shares/data.ts';
import { loadBalancersQuery } from '../load-balancers/data.ts';
import { networksQuery, subnetsQuery } from '../networks/data.ts';
import { secretsQuery } from '../secrets/data.ts';
import { snapshotsQuery } from '../snapshots/data.ts';
import { type Scope, useScope } from '../ui/scope.tsx';
import { volumesQuery } from '../volumes/data.ts';
import type { Task } from './data.ts';

interface Named {
  readonly id: string;
  readonly name?: string | null;
}

interface NamedRows {
  readonly count: number;
  readonly results: readonly Named[];
}

interface Kind {
  readonly page: string;
  /** The type of the task that deletes the resource. `delete_lbpool` is a task of the load balancer, which remains. */
  readonly deletion: string;
  readonly list: (scope: Scope) => { readonly queryKey: readonly unknown[] };
  /** Schedules create too many to read them all for their names. */
  readonly isOnlyCached?: boolean;
}

const KINDS: Readonly<Record<string, Kind>> = {
  file_share: { page: 'file-shares', deletion: 'delete_sfs', list: fileSharesQuery },
  volume: { page: 'volumes', deletion: 'delete_volume', list: volumesQuery },
  snapshot: { page: 'snapshots', deletion: 'delete_snapshot', list: snapshotsQuery, isOnlyCached: true },
  load_balancer: { page: 'load-balancers', deletion: 'delete_loadbalancer', list: loadBalancersQuery },
  network: { page: 'networks', deletion: 'delete_network', list: networksQuery },
  subnet: { page: 'subnets', deletion: 'delete_subnet', list: subnetsQuery },
  secret: { page: 'secrets', deletion: 'delete_secret', list: secretsQuery },
};

/** Names of the resources of tasks, by ID, and the kinds of which all are known: others of these kinds are deleted. */
export interface ResourceNames extends ReadonlyMap<string, string> {
  readonly knownKinds: ReadonlySet<string>;
}

export function useResourceNames(tasks: readonly Task[]): ResourceNames {
  const scope = useScope();
  const kinds = [...new Set(tasks.map((task) => task.resource_kind))].filter((kind) => kind in KINDS);
  const lists = useQueries({
    queries: kinds.map((kind) => ({ ...KINDS[kind]!.list(scope), enabled: !KINDS[kind]!.isOnlyCached })),
  }) as readonly { readonly data?: NamedRows | undefined; readonly isFetching: boolean }[];
  const names = lists.flatMap(({ data }) => (data?.results ?? []).map(({ id, name }) => [id, name ?? ''] as const));
  const isComplete = (kind: string, at: number) => {
    const { data, isFetching } = lists[at]!;
    // A long list is cut.
    return !KINDS[kind]!.isOnlyCached && data !== undefined && data.count === data.results.length && !isFetching;
  };
  const knownKinds = new Set(kinds.filter(isComplete));
  return Object.assign(new Map(names), { knownKinds });
}

const SHORT_ID = 8;

/** The resource of a task: its name, or the beginning of its ID. Deleted resources have no page. */
export function TaskResource({ task, names }: { task: Task; names: ResourceNames }) {
  const scope = useScope();
  const { resource_kind: kind, resource_id: id } = task;
  const { page, deletion } = KINDS[kind] ?? {};
  const text = names.get(id) || id.slice(0, SHORT_ID);
  const hasEnded = task.finished_on !== null;
  const isDeleted =
    (task.task_type === deletion && task.state === 'FINISHED') ||
    (hasEnded && names.knownKinds.has(kind) && !names.has(id));
  if (!page || isDeleted) {
    return (
      <span title={id}>
        <bdi>{text}</bdi> {isDeleted && <span className="muted">deleted</span>}
      </span>
    );
  }
  return (
    <Link to={scope.path(page, id)} title={id}>
      <bdi>{text}</bdi>
    </Link>
  );
}
