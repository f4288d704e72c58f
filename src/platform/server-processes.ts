/**
 * Further processes of this program, which serve its port together with each other. They run the same command with the same
 * settings under the same account, so they get the whole environment, unlike other children (child-process.ts).
 *
 * `node:cluster` accepts connections in the first process and distributes them in turn, so a process that ends takes
 * no connection with it that it has not started to serve (docs/decisions/0038-server-processes.md).
 */
import cluster, { type Worker } from 'node:cluster';

export type ServerProcess = Worker;

/** Whether this process was started by `forkServerProcess`. */
export const isServerProcess = cluster.isWorker;

/** `own`: environment variables that replace those of this process. */
export function forkServerProcess(own: Record<string, string>): ServerProcess {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  return cluster.fork(own);
}
