/** HAProxy processes outside Cloudyard: members that respond at once, and the peer with a handwritten configuration. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../test/free-port.ts';
import { findHaproxy } from '../src/drivers/haproxy/detect.ts';
import type { Workplace } from './workplace.ts';

/** The program that Cloudyard runs. */
const haproxy = findHaproxy().haproxy;
export const missingHaproxy = haproxy === null ? 'skipped: haproxy is not installed' : null;

const timeoutMs = 5000;
const defaults = `defaults
  mode http
  timeout client 50s
  timeout connect 5s
  timeout server 50s
`;

/** A member's fields in an API request. */
export interface Member {
  address: string;
  protocol_port: number;
}

/** Any number of members: one program that listens on every address of 127.0.0.0/8. */
export async function startMembers(workplace: Workplace): Promise<(n: number) => Member> {
  const port = await freePort();
  const frontend = `frontend members
  bind 0.0.0.0:${port}
  http-request return status 200 content-type text/plain string "a member"
`;
  await startProxy(workplace, 'members', defaults + frontend, port);
  return (n) => ({ address: `127.20.${Math.floor(n / 250) % 250}.${(n % 250) + 1}`, protocol_port: port });
}

/** Starts HAProxy with a handwritten configuration for these members. Returns its URL. */
export async function startHandwritten(workplace: Workplace, members: Member[]): Promise<string> {
  const port = await freePort();
  const servers = members.map(({ address, protocol_port }, i) => `  server s${i} ${address}:${protocol_port}\n`);
  const proxies = `frontend web
  bind 127.0.0.1:${port}
  default_backend pool
backend pool
  balance roundrobin
`;
  await startProxy(workplace, 'by-hand', defaults + proxies + servers.join(''), port);
  return `http://127.0.0.1:${port}/`;
}

async function startProxy(workplace: Workplace, name: string, configuration: string, port: number): Promise<void> {
  const file = join(workplace.dir, `${name}.cfg`);
  writeFileSync(file, configuration);
  const child = spawn(haproxy!, ['-db', '-f', file], { stdio: 'ignore', detached: true });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  workplace.closing(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const deadline = performance.now() + timeoutMs;
  while (!(await listens(port))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`haproxy does not start with ${file}`);
    await sleep(20);
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)));
    socket.once('error', () => resolve(false));
  });
}
