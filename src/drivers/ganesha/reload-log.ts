/**
 * How we know what Ganesha has in force: it says so in its log. The line `Received SIGHUP` is written before the
 * configuration is read; so the first one after the configuration was replaced, whoever's signal it answers, begins a
 * reload that read the new text, and `Reread exports complete` ends it. In between (CONFIG at INFO) there is a line for
 * every export that was taken, and the number of its client rules. An export without them is not in force, whatever
 * the reason; removed exports are those that are missing.
 */
import { open, stat, truncate } from 'node:fs/promises';
import type { ExpectedExport } from './configuration.ts';

export type ExportsInForce = Map<number, ExpectedExport>;

const BEGIN = 'SIGHUP_HANDLER: Received SIGHUP';
const END = 'Reread exports complete';
const TAKEN = /:Export (\d+) (?:created|updated) at pseudo \(([^)]*)\)/;
const CLIENTS = /:Export (\d+) has (\d+) defined clients/;
const LOG_LIMIT = 10 * 1024 * 1024;

/** Null while no reload has both begun and ended in this piece of the log. */
export function readReload(text: string): { inForce: ExportsInForce; complaints: string[] } | null {
  const lines = text.split('\n');
  const begin = lines.findIndex((line) => line.includes(BEGIN));
  const end = begin < 0 ? -1 : lines.findIndex((line, index) => index > begin && line.includes(END));
  if (end < 0) return null;
  const inForce: ExportsInForce = new Map();
  for (const line of lines.slice(begin, end)) {
    const taken = TAKEN.exec(line);
    if (taken) inForce.set(Number(taken[1]), { pseudo: taken[2] ?? '', clients: 0 });
    const clients = CLIENTS.exec(line);
    const known = clients && inForce.get(Number(clients[1]));
    if (clients && known) known.clients = Number(clients[2]);
  }
  return {
    inForce,
    complaints: lines
      .slice(begin)
      .filter((line) => / :(CRIT|MAJ) :/.test(line))
      .slice(0, 10),
  };
}

/** Where the log ends now. Ganesha opens it anew for each line, so it may be truncated between reloads. */
export async function logEnd(logFile: string): Promise<number> {
  const size = await stat(logFile).then(
    (found) => found.size,
    () => 0,
  );
  if (size < LOG_LIMIT) return size;
  await truncate(logFile, 0);
  return 0;
}

export async function readFrom(logFile: string, offset: number): Promise<string> {
  const file = await open(logFile, 'r');
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.max(0, size - offset));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, offset);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
