/** Proxies that authorize requests with Cloudyard, with the configurations of docs/forward-auth.md. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { root } from '../src/platform/program-files.ts';
import type { Yard } from './processes.ts';

const docs = readFileSync(join(root, 'docs', 'forward-auth.md'), 'utf8');

export interface Proxy {
  port: number;
  stop(): Promise<void>;
}

/** A code block of the document with the addresses of a test. */
function configuration(language: string, addresses: Record<string, string>): string {
  let text = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(docs)![1]!;
  for (const [from, to] of Object.entries(addresses)) text = text.replaceAll(from, to);
  return text;
}

/** Starts a proxy. The yard's `cleanUp` stops it if the test does not. */
function start(yard: Yard, port: number, program: string, ...args: string[]): Proxy {
  const env = { ...process.env, CLOUDYARD_DATA_DIR: `${yard.folder}/` };
  const child = spawn(program, args, { stdio: 'ignore', env });
  return {
    port,
    async stop() {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

const addressesOf = (yard: Yard, port: number, container: number) => ({
  '127.0.0.1:8080': `127.0.0.1:${yard.port}`,
  '127.0.0.1:8000': `127.0.0.1:${port}`,
  '127.0.0.1:9000': `127.0.0.1:${container}`,
});

/** Starts nginx in front of a container on this port. */
export async function startNginx(yard: Yard, container: number): Promise<Proxy> {
  const port = await freePort();
  const folder = join(yard.folder, `nginx-${port}`);
  mkdirSync(join(folder, 'logs'), { recursive: true });
  const server = configuration('nginx', addressesOf(yard, port, container));
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/logs/error.log; events {}
     http { access_log off; client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
            uwsgi_temp_path ${folder}; scgi_temp_path ${folder}; ${server} }`,
  );
  return start(yard, port, 'nginx', '-p', folder, '-c', file);
}

/** Starts HAProxy in front of a container on this port. */
export async function startHaproxy(yard: Yard, container: number): Promise<Proxy> {
  const port = await freePort();
  const script = join(yard.folder, `authorize-${port}.lua`);
  writeFileSync(script, configuration('lua', {}));
  const file = join(yard.folder, `haproxy-${port}.cfg`);
  const addresses = { '/etc/haproxy/authorize.lua': script, ...addressesOf(yard, port, container) };
  writeFileSync(file, configuration('haproxy', addresses));
  return start(yard, port, 'haproxy', '-db', '-f', file);
}
