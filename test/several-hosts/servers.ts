/** Cloudyard on hosts of a lab: the programs that the systemd units start, with the environment of the host. */
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { allocator, nodeFlags } from '../../bin/node-flags.mjs';
import { liveProcess } from '../../src/platform/running-processes.ts';
import { compileCache, pinnedNode, preloadsOf, serverScript } from '../server-program.ts';
import { until } from '../until.ts';
import type { LabNode } from './lab.ts';

export interface Program {
  child: ChildProcess;
  /** What it has written so far. */
  output(): string;
}

const ownVariables = /^(CLOUDYARD_|DATABASE_URL$|NODE_OPTIONS$|VITEST|TEST$|NODE_ENV$)/;
const environment = (env: Record<string, string>) => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !ownVariables.test(name))),
  ...allocator,
  ...compileCache,
  ...env,
});

/** Runs `cloudyard` on a host until it ends. @throws Node's error if it fails */
export async function runOn(host: LabNode, args: string[], env: Record<string, string>): Promise<string> {
  const own = { CLOUDYARD_DATA_DIR: dataDirOf(host, 'command'), ...env };
  const names = Object.entries(own).map(([name, value]) => `${name}=${value}`);
  const { stdout } = await host.run('env', [...names, pinnedNode, ...preloadsOf(serverScript), serverScript, ...args]);
  return stdout;
}

/** Starts `cloudyard serve`, `worker` or `host` and resolves when it is ready. `imports`: modules to load before it. */
export async function startOn(
  host: LabNode,
  args: string[],
  env: Record<string, string>,
  imports: string[] = [],
): Promise<Program> {
  const [name = ''] = args;
  const path = join(host.folder, `cloudyard-${name}.log`);
  const log = openSync(path, 'w');
  const loaded = imports.flatMap((file) => ['--import', pathToFileURL(file).href]);
  const child = host.spawn(pinnedNode, [...nodeFlags, ...preloadsOf(serverScript), ...loaded, serverScript, ...args], {
    stdio: ['ignore', log, log],
    env: environment({ CLOUDYARD_DATA_DIR: dataDirOf(host, name), CLOUDYARD_LOG_FORMAT: 'json', ...env }),
  });
  const output = () => readFileSync(path, 'utf8');
  await until(
    () => output().includes('Cloudyard is ready.') || !liveProcess(child.pid!),
    100,
    `${name} of ${host.name}`,
  );
  if (!output().includes('Cloudyard is ready.')) throw new Error(`${args.join(' ')} ended: ${output()}`);
  return { child, output };
}

function dataDirOf(host: LabNode, name: string): string {
  const path = join(host.folder, 'data', name);
  mkdirSync(path, { recursive: true });
  return path;
}
