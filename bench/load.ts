/** Load over keep-alive connections: `wrk` if it is installed, otherwise load-process.ts in a separate process. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findProgram } from './programs.ts';
import type { Workplace } from './workplace.ts';

const execute = promisify(execFile);

export interface Load {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body?: unknown;
  connections: number;
  seconds: number;
  /** Requests to alternate between, instead of the one above: the same method with other paths, headers and bodies. */
  turns?: Turn[];
}

export interface Turn {
  path: string;
  headers: Record<string, string>;
  body: unknown;
}

/** Milliseconds of each request at a steady rate, including the wait for a free connection. */
export async function latencies(load: Load & { perSecond: number }): Promise<number[]> {
  const { latencies, failures } = await runGenerator(load);
  if (failures > 0) throw new Error(`${load.method} ${load.url}: ${failures} of ${latencies.length} requests failed`);
  return latencies;
}

const wrk = findProgram('wrk');

/** Requests a second. @throws if a response is not 2xx */
export async function requestsPerSecond(workplace: Workplace, load: Load): Promise<number> {
  return wrk ? withWrk(wrk, workplace, load) : withGenerator(load);
}

async function withWrk(program: string, { dir }: Workplace, load: Load): Promise<number> {
  const { method, url, headers, body, connections, seconds, turns } = load;
  const script = join(dir, 'load.lua');
  const given = body === undefined ? '' : JSON.stringify(body);
  const one = `wrk.method = "${method}"\nwrk.body = ${given ? `[==[${given}]==]` : 'nil'}\n`;
  writeFileSync(script, turns ? scriptOf(method, turns) : one);
  const fields = { ...headers, ...(given && { 'content-type': 'application/json' }) };
  const { stdout } = await execute(program, [
    ...[
      '--threads',
      '1',
      '--connections',
      String(connections),
      '--duration',
      `${seconds}s`,
      '--timeout',
      '10s',
      '--script',
      script,
    ],
    ...Object.entries(fields).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
    url,
  ]);
  const trouble = /Non-2xx or 3xx responses: \d+|Socket errors: [^\n]*/.exec(stdout);
  if (trouble) throw new Error(`${method} ${url}: ${trouble[0]}`);
  return Number(/Requests\/sec: +([\d.]+)/.exec(stdout)![1]);
}

/** A wrk script that sends the turns in order. */
function scriptOf(method: string, turns: Turn[]): string {
  const text = (value: string) => `[==[${value}]==]`;
  const requests = turns.map(({ path, headers, body }) => {
    const fields = Object.entries({ ...headers, 'content-type': 'application/json' });
    const table = fields.map(([name, value]) => `[ ${text(name)} ] = ${text(value)}`).join(',');
    return `wrk.format("${method}", ${text(path)}, {${table}}, ${text(JSON.stringify(body))})`;
  });
  return `local turns, turn = {}, 0
init = function() turns = {${requests.join(',\n')}} end
request = function() turn = turn % #turns + 1; return turns[turn] end
`;
}

async function withGenerator(load: Load): Promise<number> {
  const { requests, failures, seconds } = await runGenerator(load);
  if (failures > 0) throw new Error(`${load.method} ${load.url}: ${failures} of ${requests} requests failed`);
  return requests / seconds;
}

interface Outcome {
  requests: number;
  failures: number;
  seconds: number;
  latencies: number[];
}

async function runGenerator(load: Load): Promise<Outcome> {
  const program = fileURLToPath(new URL('load-process.ts', import.meta.url));
  const { stdout } = await execute(process.execPath, [program, JSON.stringify(load)], { maxBuffer: 2 ** 26 });
  return JSON.parse(stdout) as Outcome;
}
