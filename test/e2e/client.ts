/** The client's commands, as processes, with a server of simulated drivers. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { bootstrapToken, type Ended, openYard, type Yard } from '../processes.ts';
import { pinnedNode } from '../server-program.ts';

export const bin = join(root, 'bin', 'cloudyard.mjs');

export interface Client {
  yard: Yard;
  env: Record<string, string>;
  run(args: string[], input?: string, own?: Record<string, string>): Promise<Omit<Ended, 'signal'>>;
  /** Runs a command that must succeed, and returns its data. */
  data(...args: string[]): Promise<any>;
}

/** Starts a server, and adds it as the context `local`. */
export async function openClient(): Promise<Client> {
  const yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_DEV: '1' });
  await yard.start(['start']);
  const env = { PATH: process.env['PATH']!, HOME: yard.folder, XDG_CONFIG_HOME: join(yard.folder, 'config') };
  const run: Client['run'] = (args, input = '', own = {}) =>
    new Promise((resolve) => {
      const child = spawn(pinnedNode, [bin, ...args], { env: { ...env, ...own } });
      let [stdout, stderr] = ['', ''];
      child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      child.once('close', (code) => resolve({ code, stdout, stderr }));
      child.stdin.end(input);
    });
  const added = await run(['context', 'add', 'local', '--url', yard.url, '--token-file', '-'], `${bootstrapToken}\n`);
  expect(added).toMatchObject({ code: 0, stdout: '', stderr: '' });
  return {
    ...{ yard, env, run },
    async data(...args) {
      const { code, stdout, stderr } = await run([...args, '-o', 'json']);
      expect([args.join(' '), code, code === 0 ? '' : stderr]).toEqual([args.join(' '), 0, '']);
      return stdout === '' ? undefined : JSON.parse(stdout);
    },
  };
}
