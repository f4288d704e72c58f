/**
 * Writes the derived files that are committed: openapi.json, policy.txt, migrations/schema.sql, docs/settings.md,
 * docs/compatibility.md, for the console the types of its API client and the operations that answer with tasks, and for the
 * client the table of its commands.
 * `--check` writes nothing and fails when a file is stale, or when the tables have a change that no migration contains.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { apiTypes } from '../../console/api-types.ts';
import { runChildSync } from '../platform/child-process.ts';
import { clientTable, clientTableText, firstWordsText } from './client-table.ts';
import { commands as commandList } from './commands/list.ts';
import { compatibilityPage, readOfficialOperations } from './compatibility.ts';
import { declaredApi, documentText, policyText } from './openapi-document.ts';
import { root } from '../platform/program-files.ts';
import { settingsPage } from './setting-descriptions.ts';

const check = process.argv.includes('--check');

async function generated(): Promise<Record<string, string>> {
  const { document, operations } = await declaredApi();
  const commands = clientTable(document as never, commandList);
  return {
    'openapi.json': documentText(document),
    'policy.txt': policyText(operations),
    'migrations/schema.sql': schemaSql(),
    'docs/settings.md': settingsPage(),
    'docs/compatibility.md': compatibilityPage(
      readOfficialOperations(readFileSync(join(root, 'src/main/official-operations.txt'), 'utf8')),
      document as never,
    ),
    'console/src/api/openapi.d.ts': await apiTypes(document as object),
    'console/src/code/task-operations.ts': taskOperationsModule(document as never),
    'src/client/operations.json': clientTableText(commands),
    'src/client/first-words.json': firstWordsText(commands),
  };
}

/** The whole schema, for reading; the server runs the migrations. */
function schemaSql(): string {
  const head = '-- Generated from src/**/table.ts (npm run generate). The migrations beside it are what runs.\n\n';
  return head + drizzleKit('export').trimEnd() + '\n';
}

/** The console shows how to wait for the tasks of these operations. */
function taskOperationsModule({
  paths,
}: {
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, object> }>>;
}): string {
  const ids = Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ responses }) => JSON.stringify(responses['200'] ?? {}).includes('/TaskIds"'))
    .map(({ operationId }) => operationId)
    .sort();
  return `// Generated from openapi.json (npm run generate).

const taskOperations = new Set([
${ids.map((id) => `  '${id}',\n`).join('')}]);

/** Whether the operation answers with the ids of tasks. */
export function answersWithTasks(operationId: string): boolean {
  return taskOperations.has(operationId);
}
`;
}

/** Runs on a copy, because the next start would run the migration that drizzle-kit writes. */
function hasUnwrittenMigration(): boolean {
  const copy = mkdtempSync(join(tmpdir(), 'cloudyard-migrations-'));
  try {
    cpSync(join(root, 'migrations'), copy, { recursive: true });
    const options = ['--dialect', 'postgresql', '--schema', './src/**/table.ts', '--out', relative(root, copy)];
    return !/No schema changes/.test(drizzleKit('generate', ...options));
  } finally {
    rmSync(copy, { recursive: true });
  }
}

function drizzleKit(...args: string[]): string {
  const bin = join(root, 'node_modules', 'drizzle-kit', 'bin.cjs');
  return runChildSync(process.execPath, [bin, ...args], { cwd: root });
}

const stale: string[] = [];
for (const [file, text] of Object.entries(await generated())) {
  const path = join(root, file);
  if (!check) writeFileSync(path, text);
  else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) stale.push(file);
}
if (check && hasUnwrittenMigration()) {
  stale.push('migrations (a table changed: npx drizzle-kit generate --name what-changed)');
}
if (stale.length > 0) {
  process.stderr.write(`not up to date: ${stale.join(', ')}; run npm run generate\n`);
  process.exit(1);
}
