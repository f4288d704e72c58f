/**
 * How we know what Ganesha has in force: it says so in its log. The line `Received SIGHUP` is written before the
 * configuration is read; so the first one after the configuration was replaced, whoever's signal it answers, begins a
 * reload that read the new text, and `Reread exports complete` ends it. In between (CONFIG at INFO) there is a line for
 * every export that was taken with its rules swapped in. An export without one is not in force, whatever the reason, and
 * the complaints about an export come before its line: a rule that Ganesha drops does not keep it from taking the export. Removed
 * exports are those that are missing.
 *
 * Not used, although it looks useful: `Export 1 has 2 defined clients` counts, after an update, the rules before it.
 */
import { open, stat, truncate } from 'node:fs/promises';

export interface Reload {
  /** By Export_Id. */
  inForce: Map<number, { pseudo: string }>;
  /** What Ganesha complained about meanwhile, for the error of an export that is missing. */
  complaints: string[];
  /** False when the text as a whole was not understood: then nothing is known, of removed exports either. */
  readable: boolean;
}

const BEGIN = 'SIGHUP_HANDLER: Received SIGHUP';
const END = 'Reread exports complete';
const TAKEN = /:Export (\d+) (?:created|updated) at pseudo \(([^)]*)\)/;
const COMPLAINT = / :(?:CONFIG|FSAL|EXPORT) :(?:CRIT|MAJ|FATAL) :/;
const UNREADABLE = 'ganesha_yyerror';
const LOG_LIMIT = 10 * 1024 * 1024;

/** Null while no reload has both begun and ended in this piece of the log. */
export function readReload(text: string): Reload | null {
  const lines = text.split('\n');
  const begin = lines.findIndex((line) => line.includes(BEGIN));
  const end = begin < 0 ? -1 : lines.findIndex((line, index) => index > begin && line.includes(END));
  if (end < 0) return null;
  const inForce: Reload['inForce'] = new Map();
  const complaints: string[] = [];
  let trusted = true;
  for (const line of lines.slice(begin, end)) {
    if (COMPLAINT.test(line)) {
      complaints.push(line);
      trusted = false;
    }
    const taken = TAKEN.exec(line);
    if (!taken) continue;
    if (trusted) inForce.set(Number(taken[1]), { pseudo: taken[2] ?? '' });
    trusted = true;
  }
  return { inForce, complaints, readable: !complaints.some((line) => line.includes(UNREADABLE)) };
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
