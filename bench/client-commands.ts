/** Commands of the client: what one costs above an empty Node process, and 200 of them against 200 of `curl`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../src/platform/program-files.ts';
import { startCloudyard } from './cloudyard.ts';
import { quiet } from './quiet.ts';
import { median } from './rounds.ts';
import type { Row } from './table.ts';
import { timesOf } from './usage.ts';
import type { Workplace } from './workplace.ts';

const rounds = 20;
const calls = 200;
const bin = join(root, 'bin', 'cloudyard.mjs');

export async function clientCommands(workplace: Workplace): Promise<Row[]> {
  const server = await startCloudyard(workplace, { command: 'serve' });
  const [, token = ''] = server.headers['authorization']!.split(' ');
  const env = { ...process.env, CLOUDYARD_URL: server.url, CLOUDYARD_TOKEN: token };
  const path = '/cloud/v1/file_shares/1/1';
  const node = [process.execPath, '-e', ''];
  const list = [process.execPath, bin, 'file-share', 'list'];
  const curl = ['curl', '-sSf', '-o', '/dev/null', '-H', `Authorization: apikey ${token}`, server.url + path];
  const run = ([file, ...args]: string[]) => {
    const { status, stderr, error } = spawnSync(file!, args, { env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${error?.message ?? stderr}`);
  };
  const cpuOfChildren = () => timesOf(process.pid)!.ofEndedChildren;
  const each = (command: string[]) => {
    const wall: number[] = [];
    const before = cpuOfChildren();
    for (let i = 0; i < rounds; i++) {
      const began = performance.now();
      run(command);
      wall.push(performance.now() - began);
    }
    return { wall, cpu: (cpuOfChildren() - before) / rounds };
  };
  const script = (command: string[]) => {
    const began = performance.now();
    for (let i = 0; i < calls; i++) run(command);
    return performance.now() - began;
  };
  // The first run compiles the modules.
  run(list);
  await quiet();
  const empty = each(node);
  await quiet();
  const listed = each(list);
  await quiet();
  const ratios: number[] = [];
  for (let i = 0; i < 3; i++) ratios.push(script(list) / script(curl));
  const batch = Array.from({ length: calls }, () => 'file-share list').join('\n');
  const batches: number[] = [];
  for (let i = 0; i < 3; i++) {
    const began = performance.now();
    const { status } = spawnSync(process.execPath, [bin, 'batch'], { env, input: batch });
    if (status !== 0) throw new Error(`batch ended with ${status}`);
    batches.push((performance.now() - began) / script(curl));
  }
  const above = median(empty.wall);
  return [
    {
      what: 'file-share list, above an empty Node',
      measured: `CPU ${listed.cpu.toFixed(0)} ms`,
      peer: `CPU ${empty.cpu.toFixed(0)} ms`,
      values: listed.wall.map((ms) => ms - above),
      unit: 'ms',
      bar: { atMost: 150 },
    },
    { what: `${calls} commands / ${calls} curl`, values: ratios, unit: 'ratio', bar: { atMost: 1.3 } },
    { what: `${calls} commands in a batch / ${calls} curl`, values: batches, unit: 'ratio', bar: { atMost: 1.3 } },
  ];
}
