/**
 * The client's commands: everything but the operator's. Start-up counts (docs/guides/command-line.md), so modules that only
 * some commands need are imported when they run.
 *
 * Invariant: standard output has nothing but data; messages and progress go to standard error.
 */
import { CommandError, exitCodes } from './errors.ts';
import type { Io } from './io.ts';

/** Returns the exit code. */
export async function runClient(args: string[], io: Io = processIo()): Promise<number> {
  try {
    if (args[0] === '__complete') {
      await (await import('./completion.ts')).complete(args.slice(1), io);
      return exitCodes.done;
    }
    await (await import('./program.ts')).runProgram(args, io, runClient);
    return exitCodes.done;
  } catch (error) {
    return report(error, io);
  }
}

function report(error: unknown, io: Io): number {
  if (error instanceof CommandError) {
    io.err.write(`cloudyard: ${error.message}\n`);
    return error.exitCode;
  }
  const { code, exitCode, message, stack } = error as Error & { code?: string; exitCode?: number };
  // Commander has printed its message.
  if (code?.startsWith('commander.')) return exitCode === 0 ? exitCodes.done : exitCodes.usage;
  if (code === 'EPIPE') return exitCodes.done;
  io.err.write(`cloudyard: ${(io.env['CLOUDYARD_LOG_LEVEL'] === 'debug' && stack) || message}\n`);
  return exitCodes.failed;
}

function processIo(): Io {
  return {
    env: process.env,
    out: (text) => void process.stdout.write(text),
    err: process.stderr,
    async readInput() {
      const chunks: Buffer[] = [];
      for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString('utf8');
    },
  };
}

/** Runs the command that the arguments of this process name. The process ends when its output is written. */
export async function main(args: string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // The reader of a pipe may stop early (`cloudyard task list | head`).
      if (error.code === 'EPIPE') process.exit(exitCodes.done);
      process.stderr.write(`cloudyard: cannot write to standard output: ${error.message}\n`);
      process.exit(exitCodes.failed);
    });
  }
  process.exitCode = await runClient(args);
}
