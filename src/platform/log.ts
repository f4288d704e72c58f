import { fstatSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import { isMainThread } from 'node:worker_threads';

export type { Logger };

/** Paths whose values are redacted in every log line. */
const redacted = [
  'authorization',
  'password',
  'secret',
  'token',
  '*.authorization',
  '*.password',
  '*.secret',
  '*.token',
  'req.headers.authorization',
];

interface LoggerOptions {
  level: string;
  /** Readable lines for a terminal instead of JSON. */
  pretty: boolean;
  /** Instead of standard output. */
  toStandardError?: boolean;
}

/** Messages are constant; variable data goes into fields. */
export function createLogger({ level, pretty, toStandardError = false }: LoggerOptions): Logger {
  const base = { level, redact: { paths: redacted, censor: '[redacted]' }, serializers: { err: serializeError } };
  if (!isMainThread) return pino(base);
  const descriptor = toStandardError ? 2 : 1;
  // Not by a thread, as is pino's default: at the exit, lines that it still writes would come after later ones.
  if (!pretty) {
    const out = pino.destination({ dest: descriptor, sync: true });
    return pino(base, linesOfTurn(out, fstatSync(descriptor).isFile() ? fileBytes : pipeBytes));
  }
  const lines = pino.transport({
    target: 'pino-pretty',
    options: { destination: descriptor, ignore: 'pid,hostname', translateTime: 'HH:MM:ss.l' },
  });
  // The terminal is gone: the process continues without its log.
  lines.on('error', () => {});
  return pino(base, lines);
}

/** As pino serializes errors, which appends the message of each cause also if the error repeats it. */
function serializeError(error: Error): unknown {
  const serialized = pino.stdSerializers.err(error);
  if (error instanceof Error) serialized.message = messageWithCauses(error);
  return serialized;
}

function messageWithCauses(error: Error): string {
  const seen = new Set<unknown>();
  let message = '';
  for (let each: unknown = error; each instanceof Error && !seen.has(each); each = each.cause) {
    seen.add(each);
    if (!message.includes(each.message)) message = message === '' ? each.message : `${message}: ${each.message}`;
  }
  return message;
}

/** The longest write that a pipe takes as a whole if several processes write to it. */
const pipeBytes = 4096;
/** A file takes every write as a whole. */
const fileBytes = 65_536;

/**
 * Writes the lines of one turn of the event loop together: a write for each line would take a tenth of a small request. A
 * process that is killed loses the lines of its last turn. `largest`: the longest write, in characters.
 *
 * Failure modes: while the lines cannot be written, because the disk is full or the terminal is gone, they are lost, and the
 * process continues.
 */
function linesOfTurn(out: ReturnType<typeof pino.destination>, largest: number): DestinationStream {
  let lines = '';
  let hasFailed = false;
  out.on('error', () => void (hasFailed = true));
  out.on('write', () => void (hasFailed = false));
  const flush = () => {
    if (lines === '') return;
    // Retries the rest of the last write, which has failed.
    if (hasFailed) out.write('');
    if (!hasFailed) out.write(lines);
    lines = '';
  };
  // Before the destination, which ends at the exit, too.
  process.prependOnceListener('exit', flush);
  return {
    write(line) {
      if (lines.length + line.length > largest) flush();
      if (lines === '') setImmediate(flush);
      lines += line;
    },
  };
}

/** A request, as its log line names it. */
interface RequestLine {
  reqId: string;
  method: string;
  url: string;
  status: number;
  ms: number;
  tokenId: string | number | undefined;
}

/** Writes lines of requests, in a fifth of the time that pino takes. No field has one of the names that are redacted. */
export function requestWriter(log: Logger): (level: 'info' | 'debug', line: RequestLine) => void {
  // With the bindings of the logger, such as `pid`, as pino has serialized them.
  const { [pino.symbols.chindingsSym]: bindings, [pino.symbols.streamSym]: out } = log as unknown as {
    [pino.symbols.chindingsSym]: string;
    [pino.symbols.streamSym]: DestinationStream;
  };
  return (level, { reqId, method, url, status, ms, tokenId }) => {
    const value = log.levels.values[level]!;
    if (value < log.levelVal) return;
    const actor = tokenId === undefined ? '' : `,"tokenId":${JSON.stringify(tokenId)}`;
    // The id is a UUID and the method a token of HTTP, so only the URL may need to be escaped.
    out.write(
      `{"level":${value},"time":${Date.now()}${bindings},"reqId":"${reqId}","method":"${method}",` +
        `"url":${JSON.stringify(url)},"status":${status},"ms":${ms}${actor},"msg":"request"}\n`,
    );
  };
}

export const silentLogger: Logger = pino({ level: 'silent' });
