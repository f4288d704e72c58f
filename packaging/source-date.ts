import { execFileSync } from 'node:child_process';
import { root } from '../src/platform/program-files.ts';

let ofCommit: number | undefined;

/** Seconds since the epoch: SOURCE_DATE_EPOCH (reproducible-builds.org), or the time of the last commit. */
export function sourceDate(): number {
  const given = process.env['SOURCE_DATE_EPOCH'];
  if (given) return Number(given);
  // A build asks for each of its files.
  ofCommit ??= Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }));
  return ofCommit;
}
