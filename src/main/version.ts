import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../platform/program-files.ts';

/** The version of this checkout or package. */
export const version = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;
