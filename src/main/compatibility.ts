/** docs/compatibility.md: the official operations that are served and those that are not, and the differences. */
import { differences } from './differences.ts';

interface OfficialOperation {
  method: string;
  /** With names in braces: `/cloud/v1/tasks/{task_id}`. */
  path: string;
  /** The method of the Python SDK; empty: the SDK has none. */
  sdk: string;
  query: string[];
}

/** Reads official-operations.txt. */
export function readOfficialOperations(text: string): OfficialOperation[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [method = '', path = '', sdk = '-', query = ''] = line.split(' ');
    return { method, path, sdk: sdk === '-' ? '' : sdk, query: query.split(',').filter(Boolean) };
  });
}

type Paths = Record<string, Record<string, unknown>>;

/** The same for an operation in both documents: the names of path parameters differ between the documents. */
export const keyOf = (method: string, path: string) => `${method.toUpperCase()} ${path.replaceAll(/\{[^}]*\}/g, '{}')}`;

/** The part of a path that names the kind of resource: `tasks` in `/cloud/v1/tasks/{task_id}`. */
function areaOf({ path }: { path: string }): string {
  return path.split('/').find((part) => !/^(|cloud|public|v\d)$/.test(part)) ?? path;
}

/** The page. `document`: the OpenAPI document of Cloudyard. */
export function compatibilityPage(official: OfficialOperation[], document: { paths: Paths }): string {
  const own = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path, sdk: '', query: [] })),
  );
  const ownKeys = new Set(own.map(({ method, path }) => keyOf(method, path)));
  const officialKeys = new Set(official.map(({ method, path }) => keyOf(method, path)));
  const isServed = ({ method, path }: OfficialOperation) => ownKeys.has(keyOf(method, path));
  const areas = [...Map.groupBy(official, areaOf)].map(([name, all]) => ({ name, all, served: all.filter(isServed) }));
  const present = areas.filter(({ served }) => served.length > 0);
  const absent = areas.filter(({ served }) => served.length === 0);
  const beyond = own.filter(({ method, path }) => !officialKeys.has(keyOf(method, path)));
  const served = official.filter(isServed);
  const inSdk = (operations: OfficialOperation[]) => operations.filter(({ sdk }) => sdk !== '').length;
  return [
    '# Compatibility with the Gcore Cloud API',
    'Generated from openapi.json, src/main/official-operations.txt and src/main/differences.ts (npm run generate).',
    `Cloudyard serves ${served.length} of the ${official.length} operations of the official API, and ${inSdk(served)} of the ` +
      `${inSdk(official)} that the official Python SDK has. What it serves has the official shapes: the Python SDK, the Go SDK ` +
      'and the Terraform provider work unchanged.',
    '## Differences',
    table(
      ['Cloudyard', 'Official API', 'Reason'],
      differences.map(({ here, official: there, reason }) => [here, there, reason]),
    ),
    '## Areas',
    table(
      ['Area', 'Served', 'Not served'],
      present.map(({ name, all, served: { length } }) => [`\`${name}\``, `${length}`, `${all.length - length || ''}`]),
    ),
    `Areas of which nothing is served: ${absent.map(({ name, all }) => `\`${name}\` (${all.length})`).join(', ')}.`,
    '## Served',
    operationTable(present.flatMap((area) => area.served)),
    '## Not served, in areas that are served',
    operationTable(present.flatMap(({ all }) => all.filter((each) => !isServed(each)))),
    '## Beyond the official API',
    operationTable(beyond),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

function operationTable(operations: OfficialOperation[]): string {
  const hasSdk = operations.some(({ sdk }) => sdk !== '');
  return table(
    ['Operation', ...(hasSdk ? ['Python SDK'] : [])],
    operations.map(({ method, path, sdk }) => [
      `${method} \`${path}\``,
      ...(hasSdk ? [sdk === '' ? '' : `\`cloud.${sdk}\``] : []),
    ]),
  );
}

function table(heading: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`;
  return [line(heading), `|${'---|'.repeat(heading.length)}`, ...rows.map(line)].join('\n');
}
