/**
 * What `doctor` checks on a PostgreSQL that fails over: a change is acknowledged only when a standby has it, so that a
 * failover loses none. A single server is not checked, unless a region spans several hosts.
 */
import type pg from 'pg';
import type { Finding } from './finding.ts';

interface Replication {
  role: string;
  names: string;
  commit: string;
  standbys: number;
  /** Null: the role may not see it. */
  synchronous: number | null;
}

/** Settings of `synchronous_commit` that do not wait for a standby. */
const doNotWait = ['off', 'local'];
const name = 'replication of PostgreSQL';
const onPrimary = (statement: string) => `psql "$DATABASE_URL" -c '${statement}'`;
/** Without `-c` it reads a file in the home directory. */
const patronictl = 'patronictl -c /etc/patroni/config.yml';

/** Empty for a single server. `required`: there must be a standby. */
export async function checkReplication(client: pg.ClientBase, required: boolean): Promise<Finding[]> {
  // Base backups stream, too, and end soon.
  const { rows } = await client.query<Replication>(
    `select current_user as role, current_setting('synchronous_standby_names') as names,
       current_setting('synchronous_commit') as commit, count(s.pid)::int as standbys,
       case when bool_or(s.pid is not null and s.sync_state is null) then null
         else (count(*) filter (where s.sync_state in ('sync', 'quorum') and s.state = 'streaming'))::int end as synchronous
     from (select) one left join pg_stat_replication s on s.application_name <> 'pg_basebackup'`,
  );
  const found = rows[0]!;
  if (!required && found.names === '' && found.standbys === 0) return [];
  const gap = gapOf(found);
  if (gap) return [{ name, ok: false, ...gap }];
  return [{ name, ok: true, detail: `${found.synchronous} synchronous of ${found.standbys} standbys` }];
}

function gapOf(found: Replication): Pick<Finding, 'detail' | 'remedy'> | null {
  const { role, names, commit, standbys, synchronous } = found;
  if (doNotWait.includes(commit)) {
    const detail = `synchronous_commit is ${commit} for the role ${role}, so a failover loses acknowledged changes`;
    return { detail, remedy: onPrimary(`alter role "${role}" set synchronous_commit = on`) };
  }
  if (names === '') {
    const detail = 'synchronous_standby_names is empty, so a failover loses acknowledged changes';
    return {
      detail,
      remedy: `${patronictl} edit-config --force --set synchronous_mode=true    # docs/several-hosts-failures.md`,
    };
  }
  if (standbys === 0) return { detail: 'no standby is connected', remedy: `${patronictl} list` };
  if (synchronous === null) {
    const detail = `the role ${role} may not read the state of the standbys`;
    const grant = `runuser -u postgres -- psql -c 'grant pg_read_all_stats to "${role}"'`;
    return { detail, remedy: `${grant}    # as root, on the host of the primary` };
  }
  if (synchronous > 0) return null;
  return { detail: `none of ${standbys} standbys is synchronous, so commits wait`, remedy: `${patronictl} list` };
}
