/**
 * Every GET of a resource, against GET of a file share, and every list against a list of as many file shares.
 * BENCH_READS: the operationIds to measure, separated by commas; default: all.
 */
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { count, createExamples, type Examples } from './examples.ts';
import { requestsPerSecond } from './load.ts';
import { interleave, ratios } from './rounds.ts';
import { perSecond, type Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const rounds = 2;
const seconds = 1;
const connections = 32;
const share = 'getFileShare';
const shares = 'listFileShares';

export async function reads(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start' });
  const examples = await createExamples(cloudyard);
  const { paths, missing } = await pathsOf(cloudyard, examples);
  const { headers } = cloudyard;
  const side = (path: string) => () =>
    requestsPerSecond(workplace, { method: 'GET', url: cloudyard.url + path, headers, connections, seconds });
  await side(paths[share]!)();
  const sides = Object.fromEntries(Object.entries(paths).map(([operation, path]) => [operation, side(path)]));
  const measured = await interleave(rounds, sides);
  return [
    ...Object.keys(paths).map((operation) => rowOf(operation, measured)),
    ...missing.map((what) => ({ what, why: 'skipped: the bench has no example of it' })),
  ];
}

function rowOf(operation: string, measured: Record<string, number[]>): Row {
  const isList = operation.startsWith('list');
  const [peer, what] = isList ? [measured[shares]!, `list of ${count} shares`] : [measured[share]!, 'get share'];
  const values = measured[operation]!;
  return {
    what: `${operation} / ${what}`,
    values: ratios(values, peer),
    measured: perSecond(values),
    peer: perSecond(peer),
    unit: 'ratio',
    bar: { atLeast: 0.4 },
  };
}

/** They have no resource, or are measured elsewhere. */
const otherTags = new Set(['System', 'Development', 'Registry protocol', 'Events']);

const chosen = process.env['BENCH_READS']?.split(',');

/** The path of each operation that responds with 2xx to the examples, by operationId. */
async function pathsOf(cloudyard: Cloudyard, examples: Examples) {
  const document = await cloudyard.request('GET', '/openapi.json');
  const paths: Record<string, string> = {};
  const missing: string[] = [];
  for (const [template, { get }] of Object.entries<any>(document.paths)) {
    if (!get || otherTags.has(get.tags[0])) continue;
    if (chosen && ![share, shares, ...chosen].includes(get.operationId)) continue;
    const path = template.replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
      encodeURIComponent(examples[name] ?? whole),
    );
    const hasExamples = !path.includes(encodeURIComponent('{'));
    const found =
      hasExamples &&
      (await cloudyard.request('GET', path + queryOf(document, get)).then(
        () => true,
        () => false,
      ));
    if (found) paths[get.operationId] = path + queryOf(document, get);
    else missing.push(get.operationId);
  }
  return { paths, missing };
}

/** A page of `count` for a list, and the key of an item of metadata. */
function queryOf(document: any, operation: { operationId: string; parameters?: any[] }): string {
  const parameters = (operation.parameters ?? []).map(({ $ref, ...inline }) =>
    $ref ? document.components.parameters[$ref.split('/').at(-1)] : inline,
  );
  const has = (name: string) => parameters.some((parameter) => parameter.in === 'query' && parameter.name === name);
  if (has('limit')) return `?limit=${count}`;
  return has('key') ? '?key=team' : '';
}
