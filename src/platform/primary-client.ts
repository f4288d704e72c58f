/**
 * Connections to the primary of a database that fails over to its replicas.
 *
 * Invariants:
 * - A connection writes to and reads from a primary. One to a standby is refused, because its rows may be old and an advisory
 *   lock there excludes nobody; one whose server has become read-only is closed, so that the next one finds the new primary.
 * - A change counts as committed only after the wait for the synchronous standby. PostgreSQL reports success, with a warning,
 *   when an administrator cancels this wait, although the change may be lost in a failover. Here the outcome is unknown.
 */
import pg from 'pg';

/** SQLSTATE of a write to a standby, or to a server that its operator made read-only. */
export const readOnly = '25006';
/** SQLSTATE of class 08: transaction resolution unknown. */
const outcomeUnknown = '08007';
/** The function of PostgreSQL that waits; unlike the text of its warning it is not translated. */
const waitForStandby = 'SyncRepWaitForLSN';
/** The kernel then sends 10 probes, one a second, so a lost host is noticed after 15 s. */
const keepAliveDelayMs = 5000;

/** Errors with which connections failed or broke: those of TLS, for example, have many codes, or none. */
const ofConnections = new WeakSet<Error>();
/** Whether a connection to PostgreSQL failed or broke with this error. */
export const isConnectionError = (error: Error) => ofConnections.has(error);

/** Records the errors of the connection of a client. Call it before it connects. */
export function recordConnectionErrors(client: pg.Client): void {
  protocolOf(client).on('error', (error) => void ofConnections.add(error));
}

/** What `pg` receives on a connection: messages by their names in the protocol. */
interface Protocol {
  on(event: 'parameterStatus', listener: (message: { parameterName: string; parameterValue: string }) => void): void;
  on(event: 'errorMessage', listener: (error: { code?: string }) => void): void;
  on(event: 'error', listener: (error: Error) => void): void;
  on(event: 'notice', listener: (notice: { routine?: string }) => void): void;
  /** The server, or a proxy before it, has accepted the connection. */
  once(event: 'connect', listener: () => void): void;
  emit(event: 'error', error: Error): void;
  stream: { destroy(): void };
}

/** The messages that `pg` receives; its types omit them. */
export const protocolOf = (client: pg.Client) => (client as unknown as { connection: Protocol }).connection;

/** Fails all statements of the connection, also those whose response has arrived but was not read, and closes it. */
export function breakConnection(client: pg.Client, message: string, code: string): void {
  const protocol = protocolOf(client);
  protocol.emit('error', Object.assign(new Error(message), { code }));
  protocol.stream.destroy();
}

/** A client for `pg.Pool`, or alone. The caller listens for its `error` events. */
export function createPrimaryClient(config: pg.ClientConfig): pg.Client {
  const keepAlive = { keepAlive: true, keepAliveInitialDelayMillis: keepAliveDelayMs };
  // In the options of a pool the password is not enumerable.
  const client = new pg.Client({ ...keepAlive, ...config, ...(config.password && { password: config.password }) });
  recordConnectionErrors(client);
  const protocol = protocolOf(client);
  protocol.on('parameterStatus', ({ parameterName, parameterValue }) => {
    if (parameterName !== 'in_hot_standby' || parameterValue !== 'on') return;
    breakConnection(client, 'the server is a standby', readOnly);
  });
  protocol.on('errorMessage', ({ code }) => {
    if (code === readOnly) protocol.stream.destroy();
  });
  protocol.on('notice', ({ routine }) => {
    if (routine !== waitForStandby) return;
    breakConnection(client, 'the wait for the synchronous standby was cancelled', outcomeUnknown);
  });
  return client;
}
