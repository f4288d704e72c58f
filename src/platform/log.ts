import { pino } from 'pino';
import type { Logger } from 'pino';
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

/** JSON lines in production, readable lines on a terminal. Messages are constant; variable data goes into fields. */
export function createLogger(options: { level: string; pretty: boolean }): Logger {
  const base = { level: options.level, redact: { paths: redacted, censor: '[redacted]' } };
  if (!options.pretty || !isMainThread) return pino(base);
  return pino({
    ...base,
    transport: { target: 'pino-pretty', options: { ignore: 'pid,hostname', translateTime: 'HH:MM:ss.l' } },
  });
}

/** For frequent lines whose fields have none of the names that are redacted. */
export function withoutRedaction(log: Logger): Logger {
  return log.child({}, { redact: [] });
}

export const silentLogger: Logger = pino({ level: 'silent' });
