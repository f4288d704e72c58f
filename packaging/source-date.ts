import { execFileSync } from 'node:child_process';
import { root } from '../src/main/root.ts';

/** Seconds since the epoch: SOURCE_DATE_EPOCH (reproducible-builds.org), or the time of the last commit. */
export function sourceDate(): number {
  const given = process.env['SOURCE_DATE_EPOCH'];
  return Number(given ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }));
}
