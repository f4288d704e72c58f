/**
 * `failed FILE` prints the files of an outcome that failed, one a line. `summary FIRST [REPEATED]` prints the summary of a run
 * and of the repetition of its failed files, and exits with 1 if a failure remains.
 */
import { existsSync, readFileSync } from 'node:fs';
import { failedFiles, type Outcome, summaryOf } from './outcome.ts';

const read = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Outcome;

const [command, first, repeated] = process.argv.slice(2);
if (!first || !existsSync(first)) {
  // The run ended before its tests did.
  if (command === 'summary') console.log('0 passed, 1 failed');
  process.exitCode = 1;
} else if (command === 'failed') {
  for (const path of failedFiles(read(first))) console.log(path);
} else {
  const { lines, failures } = summaryOf(read(first), repeated && existsSync(repeated) ? read(repeated) : null);
  console.log(lines.join('\n'));
  process.exitCode = failures > 0 ? 1 : 0;
}
