/**
 * Reads from Ganesha's log which exports are in force. Ganesha writes `Received SIGHUP` before it reads the configuration, so
 * the first such line after the configuration was replaced begins a reload of the new text, and `Reread exports complete`
 * ends it. In between (CONFIG at INFO) is one line for every export that Ganesha accepted with its new rules. An export
 * without a line is not in force. Errors precede the line of their export: Ganesha accepts an export even if it drops a
 * rule, so an export with errors is not trusted.
 *
 * Not used: `Export 1 has 2 defined clients` counts the rules from before an update.
 */

export interface Reload {
  /** By Export_Id. */
  inForce: Map<number, { pseudo: string }>;
  /** Errors that Ganesha logged during the reload. */
  errors: string[];
  /** False: Ganesha could not parse the configuration, so nothing is known about any export. */
  readable: boolean;
}

const BEGIN = 'SIGHUP_HANDLER: Received SIGHUP';
const END = 'Reread exports complete';
const ACCEPTED = /:Export (\d+) (?:created|updated) at pseudo \(([^)]*)\)/;
const ERROR = / :(?:CONFIG|FSAL|EXPORT) :(?:CRIT|MAJ|FATAL) :/;
const UNREADABLE = 'ganesha_yyerror';

/** Returns the first reload in a piece of the log; null if none has begun and ended in it. */
export function readReload(text: string): Reload | null {
  const lines = text.split('\n');
  const begin = lines.findIndex((line) => line.includes(BEGIN));
  const end = begin < 0 ? -1 : lines.findIndex((line, index) => index > begin && line.includes(END));
  if (end < 0) return null;
  const inForce: Reload['inForce'] = new Map();
  const errors: string[] = [];
  let trusted = true;
  for (const line of lines.slice(begin, end)) {
    if (ERROR.test(line)) {
      errors.push(line);
      trusted = false;
    }
    const accepted = ACCEPTED.exec(line);
    if (!accepted) continue;
    if (trusted) inForce.set(Number(accepted[1]), { pseudo: accepted[2] ?? '' });
    trusted = true;
  }
  return { inForce, errors, readable: !errors.some((line) => line.includes(UNREADABLE)) };
}
