/**
 * Registrations of NFSv3 in rpcbind whose process is gone. rpcbind keeps the registrations of a killed NFS server: clients
 * would be sent to a dead port, and Ganesha exits if it cannot replace one.
 */
import type { Logger } from '../../platform/log.ts';
import { run } from '../command.ts';
import { listenersOn } from '../ports.ts';
import { findProgram } from '../programs.ts';

/** NFS, MOUNT and NLM, which Ganesha registers. */
const programs = new Set(['100003', '100005', '100021']);

interface Registration {
  program: string;
  version: string;
  port: number;
}

/** Removes registrations on whose TCP port no process of this host listens. */
export async function removeStaleRegistrations(log: Logger): Promise<void> {
  const rpcinfo = findProgram('rpcinfo');
  if (!rpcinfo) return;
  const stdout = await run(rpcinfo, ['-p', '127.0.0.1']).catch(() => '');
  for (const { program, version, port } of registrationsIn(stdout)) {
    if (listenersOn(port).size > 0) continue;
    // Removes all protocols of this version, so UDP as well.
    await run(rpcinfo, ['-d', program, version]).then(
      () => log.warn({ program, version, port }, 'removed the registration of a process that has ended from rpcbind'),
      (err: unknown) => log.warn({ err, program, version, port }, 'a stale registration in rpcbind cannot be removed'),
    );
  }
}

function registrationsIn(text: string): Registration[] {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  return lines
    .filter(([program = '', , protocol]) => programs.has(program) && protocol === 'tcp')
    .map(([program, version, , port]) => ({ program: program!, version: version!, port: Number(port) }));
}
