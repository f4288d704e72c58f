/**
 * Further processes of this program, which serve its port together with each other. They run the same command with the same
 * settings under the same account, so they get the whole environment, unlike other children (child-process.ts).
 *
 * Invariant: a process that ends takes no connection with it that it has not started to serve. `node:cluster` accepts
 * connections in the first process and distributes them in turn (docs/decisions/0038-server-processes.md).
 */
import cluster, { type Worker } from 'node:cluster';

export type ServerProcess = Worker;

/** Whether this process was started by `forkServerProcess`. */
export const isServerProcess = cluster.isWorker;

const listening = new Set<Worker>();

/** `own`: environment variables that replace those of this process. */
export function forkServerProcess(own: Record<string, string>): ServerProcess {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const worker = cluster.fork(own);
  worker.once('listening', () => listening.add(worker));
  worker.once('disconnect', () => listening.delete(worker));
  boundDistribution(worker);
  return worker;
}

/** A message to a process, or its answer, of which `ack` is the `seq` of the message. */
interface ClusterMessage {
  act?: string;
  seq?: number;
  ack?: number;
  accepted?: boolean;
}

/** A connection that the first process has accepted, and how many processes have declined it. */
interface Connection {
  declined?: number;
}

/**
 * Corrects two faults of `node:cluster` in Node 24. It distributes a connection that all processes decline, because they are full,
 * again and again at full speed. And if a process ends before it has answered, for example because it was frozen, it keeps the
 * connection open permanently, and does not emit 'disconnect'.
 */
function boundDistribution(worker: Worker): void {
  const child = worker.process;
  const unanswered = new Map<number, Connection>();
  const send = child.send.bind(child) as (...sent: unknown[]) => boolean;
  child.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.act === 'newconn') unanswered.set(message.seq!, rest[0] as Connection);
    return send(message, ...rest);
  };
  // Before node:cluster, which closes its side of a connection that was accepted, and distributes another one again.
  child.prependListener('internalMessage', (message: ClusterMessage) => {
    const connection = message.ack === undefined ? undefined : unanswered.get(message.ack);
    if (!connection) return;
    unanswered.delete(message.ack!);
    if (message.accepted) return;
    connection.declined = (connection.declined ?? 0) + 1;
    message.accepted = connection.declined >= listening.size;
  });

  let isDisconnected = false;
  // Emitted after node:cluster has removed the process. A process answers before it reads from a connection.
  worker.once('disconnect', () => {
    isDisconnected = true;
    const connections = [...unanswered];
    unanswered.clear();
    for (const [ack] of connections) {
      child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: listening.size === 0 });
    }
  });
  // The process has ended, and all its messages have been read.
  child.once('close', () => setImmediate(() => isDisconnected || child.emit('disconnect')));
}
