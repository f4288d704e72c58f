/**
 * Closes connections whose server is gone without having closed them: its host died, or a firewall dropped the connection.
 * TCP retransmits an unanswered statement for 15 minutes, and keepalive probes start only when nothing is unanswered.
 *
 * A statement may also take long, so when one is unanswered for some seconds a second connection asks the server for its
 * backend. After a failover that is another server, which may have a backend of the same number, so each connection asks when
 * its server was started. A connection pooler hides the processes of the server, so behind one this finds out nothing and
 * closes nothing. A server that accepts the connection and does not respond is overloaded, not gone.
 */
import pg from 'pg';
import { hostShortageOf } from './db-errors.ts';
import { breakConnection, createPrimaryClient, protocolOf } from './primary-client.ts';
import { joined } from './turns.ts';
import { TimeLimitError, within } from './within.ts';

interface Timing {
  checkMs: number;
  /** How long a statement may take before the server is asked whether its backend still exists. */
  unansweredMs: number;
  probeMs: number;
}

const defaultTiming: Timing = { checkMs: 1000, unansweredMs: 3000, probeMs: 5000 };
/** Failed probes in a row after which the server counts as gone. */
const maxFailures = 2;
const connectionFailure = '08006';

/** Parts of `pg.Client` that its types omit. */
interface Internals {
  processID: number;
  _activeQuery: object | null;
  _sentQueryQueue: object[];
}

/** The server that responds now. */
interface Found {
  /** Which of the processes are backends. */
  processIds: Set<number>;
  startedAt: string;
}

/** Null: unknown. @throws if no server responds */
type Probe = (processIds: number[]) => Promise<Found | null>;

const startOfServer = 'pg_postmaster_start_time()::text as "startedAt"';

/** Watches the connections of a pool until it ends. */
export function closeLostConnections(
  pool: pg.Pool,
  config: pg.ClientConfig,
  { checkMs, unansweredMs, probeMs }: Timing = defaultTiming,
): void {
  const probe = probeWith(config, probeMs);
  const clients = new Set<pg.Client>();
  /** When the server of a connection was started. */
  const startedAt = new WeakMap<pg.Client, string>();
  pool.on('connect', (connected) => {
    const client = connected as unknown as pg.Client;
    clients.add(client);
    client.query<Found>(`select ${startOfServer}`).then(
      ({ rows }) => startedAt.set(client, rows[0]!.startedAt),
      // The connection broke.
      () => {},
    );
  });
  pool.on('remove', (client) => void clients.delete(client as unknown as pg.Client));
  const seenAt = new WeakMap<object, number>();
  let failures = 0;

  const isUnanswered = (client: pg.Client) => {
    const { _activeQuery, _sentQueryQueue } = client as unknown as Internals;
    const oldest = _activeQuery ?? _sentQueryQueue[0];
    if (!oldest) return false;
    const since = seenAt.get(oldest);
    if (since === undefined) seenAt.set(oldest, performance.now());
    return since !== undefined && performance.now() - since >= unansweredMs;
  };

  const check = joined(async () => {
    const unanswered = [...clients].filter(isUnanswered);
    if (unanswered.length === 0) return void (failures = 0);
    const isGone = await probe(unanswered.map(backendOf)).then(
      (found) => {
        failures = 0;
        return (client: pg.Client) => found !== null && !isBackendOf(found, client, startedAt.get(client));
      },
      () => {
        failures += 1;
        return () => failures >= maxFailures;
      },
    );
    for (const client of unanswered) {
      if (!isGone(client) || !isUnanswered(client)) continue;
      breakConnection(client, 'the server of this connection is gone', connectionFailure);
    }
  });

  const timer = setInterval(() => {
    if (pool.ended) return clearInterval(timer);
    void check();
  }, checkMs).unref();
}

/** The pid of the backend of PostgreSQL that serves a connection. */
export const backendOf = (client: pg.Client) => (client as unknown as Internals).processID;

function isBackendOf(found: Found, client: pg.Client, startedAt: string | undefined): boolean {
  return found.processIds.has(backendOf(client)) && (startedAt === undefined || startedAt === found.startedAt);
}

function probeWith(config: pg.ClientConfig, probeMs: number): Probe {
  return async (processIds) => {
    const client = createPrimaryClient({ ...config, application_name: 'cloudyard probe' });
    client.on('error', () => {});
    let isAccepted = false;
    protocolOf(client).once('connect', () => (isAccepted = true));
    try {
      return await within(probeMs, () => findBackends(client, processIds));
    } catch (error) {
      // An overloaded server.
      if (error instanceof TimeLimitError && isAccepted) return null;
      // The server responds, for example that it has too many connections.
      if (error instanceof pg.DatabaseError) return null;
      // It does not accept connections fast enough, or this host cannot open one.
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN' || hostShortageOf(error) !== null) return null;
      throw error;
    } finally {
      // This connection may be lost, too.
      protocolOf(client).stream.destroy();
    }
  };
}

/** Null: a pooler hides them. */
async function findBackends(client: pg.Client, processIds: number[]): Promise<Found | null> {
  await client.connect();
  const { rows } = await client.query<{ pid: number; own: boolean; startedAt: string }>(
    `select pid, pid = pg_backend_pid() as own, ${startOfServer} from pg_stat_activity
     where pid = any ($1::int[]) or pid = $2`,
    [processIds, backendOf(client)],
  );
  const own = rows.find((row) => row.own);
  return own ? { processIds: new Set(rows.map(({ pid }) => pid)), startedAt: own.startedAt } : null;
}
