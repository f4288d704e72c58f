/** How to call this program again, for remedies that a person pastes into a shell. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { root } from '../platform/program-files.ts';
import { shellWord } from '../platform/shell-word.ts';

/** The command of this process. */
export const program = programOf(process.env);

export function programOf(env: Record<string, string | undefined>): string {
  if (env['npm_lifecycle_event'] === 'start' || env['npm_lifecycle_event'] === 'cloudyard') {
    return 'npm run -s cloudyard --';
  }
  if (env['npm_lifecycle_event'] === 'npx') return 'npx cloudyard';
  const isOnPath = (env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) => folder !== '' && existsSync(join(folder, 'cloudyard')));
  return isOnPath ? 'cloudyard' : shellWord(join(root, 'bin', 'cloudyard.mjs'));
}
