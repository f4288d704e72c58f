/**
 * Detects the programs for load balancers before anything is started. `findHaproxy` is pure over `HostFacts`. HAProxy 2.6 is
 * the first version that adds and removes servers at run time without `experimental-mode`. UDP needs nginx with its
 * stream module.
 */
import { existsSync } from 'node:fs';
import { runChildSync } from '../../platform/child-process.ts';
import { findProgram } from '../programs.ts';

export interface HostFacts {
  /** The path of a program, or null. */
  program(name: string): string | null;
  /** The output of `haproxy -v`. */
  haproxyVersion(path: string): string;
  /** The file of nginx's stream module, `built in`, or null. */
  streamModule: string | null;
}

export interface HaproxyFinding {
  /** Null if only the simulated driver can be used. */
  haproxy: string | null;
  nginx: { program: string; streamModule: string } | null;
  ping: string | null;
  detail: string;
  remedy?: string;
}

const INSTALL_HAPROXY = 'apt-get install haproxy nginx-light libnginx-mod-stream && npm start';
const NEEDED: [number, number] = [2, 6];

/** `haproxy` of the result is null if it is missing or too old; `remedy` is a command. */
export function findHaproxy(host: HostFacts = thisHost()): HaproxyFinding {
  const haproxy = host.program('haproxy');
  if (!haproxy) return absent('HAProxy is not installed');
  const text = host.haproxyVersion(haproxy);
  const version = /version (\d+)\.(\d+)/.exec(text);
  if (!version) return absent('HAProxy does not report its version');
  const [major, minor] = [Number(version[1]), Number(version[2])];
  if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
    return absent(`HAProxy ${major}.${minor} is too old, ${NEEDED.join('.')} is needed`);
  }
  const program = host.program('nginx');
  const nginx = program && host.streamModule ? { program, streamModule: host.streamModule } : null;
  const finding = { haproxy, nginx, ping: host.program('ping') };
  const detail = `load balancers by HAProxy ${major}.${minor}`;
  if (nginx) return { ...finding, detail: `${detail}, UDP by nginx` };
  const reason = program ? "nginx's stream module is not installed" : 'nginx is not installed';
  return { ...finding, detail: `${detail}; no UDP, because ${reason}`, remedy: INSTALL_HAPROXY };
}

function absent(detail: string): HaproxyFinding {
  return { haproxy: null, nginx: null, ping: null, detail, remedy: INSTALL_HAPROXY };
}

function thisHost(): HostFacts {
  return {
    program: findProgram,
    haproxyVersion: (path) => output(path, '-v'),
    streamModule: findStreamModule(),
  };
}

/** The file to load, `built in`, or null. */
export function findStreamModule(): string | null {
  const nginx = findProgram('nginx');
  if (!nginx) return null;
  const file = ['/usr/lib/nginx/modules', '/usr/lib64/nginx/modules', '/etc/nginx/modules']
    .map((folder) => `${folder}/ngx_stream_module.so`)
    .find((path) => existsSync(path));
  return file ?? (/--with-stream(?!=dynamic|_)/.test(output(nginx, '-V')) ? 'built in' : null);
}

/** Both streams: nginx prints its version on stderr. */
function output(file: string, argument: string): string {
  try {
    return runChildSync('/bin/sh', ['-c', '"$0" "$1" 2>&1', file, argument], { timeout: 10_000 });
  } catch {
    return '';
  }
}
