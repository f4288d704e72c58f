/**
 * The one distribution of this data directory. It outlives a crash of ours and is adopted, pushes and pulls undisturbed,
 * unless it runs with other settings than are asked for now: they count at its start only, so they are part of its
 * configuration's name, and one with another name is ended first.
 *
 * No cache of blob descriptors: it would go on naming blobs that garbage collection took away.
 */
import { createHash } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Daemon, type LiveProcess, liveProcess, superviseDaemon } from '../../platform/daemon.ts';
import { hostError } from '../command.ts';
import type { RegistryHosting } from '../registry.ts';
import { writeDurably } from '../durable-files.ts';
import { type Layout, namesIn } from './layout.ts';
import { repair } from './repair.ts';

export interface DistributionOptions {
  layout: Layout;
  program: string;
  host: string;
  port: number;
  /** PEM files; without them it speaks plain HTTP. */
  tls: { certificate: string; key: string } | null;
  log: Logger;
}

/** Writes the settings down, ends one that runs with others, and starts or adopts. @throws DriverError */
export async function startDistribution(options: DistributionOptions, hosting: RegistryHosting): Promise<Daemon> {
  const { layout, program, log } = options;
  const name = createHash('sha256')
    .update(JSON.stringify([hosting, options.host, options.port, options.tls]))
    .digest('hex')
    .slice(0, 12);
  const certificate = join(layout.distribution, `${name}.crt`);
  const file = join(layout.distribution, `${name}.yml`);
  const pidFile = join(layout.distribution, 'distribution.pid');
  try {
    await endOther(pidFile, file, log);
    for (const old of await namesIn(layout.distribution)) {
      if (/^[0-9a-f]{12}\./.test(old) && !old.startsWith(name)) await rm(join(layout.distribution, old));
    }
    await writeDurably(certificate, hosting.certificate);
    await writeDurably(file, configuration(options, hosting, certificate));
    return await superviseDaemon({
      name: 'distribution',
      command: { file: program, args: ['serve', file] },
      pidFile,
      matches: (commandLine) => isOn(commandLine, file),
      probe: () => probe(options, hosting.realm),
      startTimeout: 20,
      logFile: join(layout.distribution, 'distribution.log'),
      stopSignal: 'SIGTERM',
      beforeStart: () => repair(layout, log),
      log,
    });
  } catch (error) {
    throw hostError(`distribution does not start: ${(error as Error).message}`, error);
  }
}

/** JSON is YAML, and quotes by itself. */
function configuration({ layout, host, port, tls }: DistributionOptions, hosting: RegistryHosting, bundle: string) {
  const { realm, service, issuer, httpSecret, events } = hosting;
  return JSON.stringify(
    {
      version: '0.1',
      // It warns of every client that has no token yet.
      log: { level: 'error', formatter: 'json', accesslog: { disabled: true } },
      storage: {
        filesystem: { rootdirectory: layout.storage },
        delete: { enabled: true },
        redirect: { disable: true },
        maintenance: { uploadpurging: { enabled: true, age: '24h', interval: '1h', dryrun: false } },
      },
      http: {
        addr: `${bindAddress(host)}:${port}`,
        secret: httpSecret,
        // Whoever stands in front of it (a name, a port, TLS) need not tell.
        relativeurls: true,
        draintimeout: '5s',
        headers: { 'X-Content-Type-Options': ['nosniff'] },
        ...(tls && { tls: { certificate: tls.certificate, key: tls.key, minimumtls: 'tls1.2' } }),
      },
      auth: { token: { realm, service, issuer, rootcertbundle: bundle } },
      notifications: {
        events: { includereferences: true },
        endpoints: [
          {
            name: 'cloudyard',
            url: events.url,
            headers: { Authorization: [`Bearer ${events.secret}`] },
            timeout: '5s',
            threshold: 3,
            backoff: '1s',
          },
        ],
      },
    },
    null,
    2,
  );
}

/** `host` when this machine has that address (behind NAT it has not); otherwise everything. */
function bindAddress(host: string): string {
  const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  if (!isIP(host) || !(own.includes(host) || host.startsWith('127.'))) return '';
  return isIP(host) === 6 ? `[${host}]` : host;
}

/** Answers, and sends clients to our realm: so it is this one and no other program. */
function probe({ host, port, tls }: DistributionOptions, realm: string): Promise<void> {
  const hostname = bindAddress(host).replace(/^\[|\]$/g, '') || '127.0.0.1';
  return new Promise((resolve, reject) => {
    const ask = tls ? httpsRequest : httpRequest;
    const asked = ask(
      { hostname, port, path: '/v2/', timeout: 2000, agent: false, rejectUnauthorized: false },
      (answer) => {
        answer.resume();
        const challenge = String(answer.headers['www-authenticate']);
        if (challenge.includes(`realm="${realm}"`)) resolve();
        else reject(new Error(`another program answers on port ${port}`));
      },
    );
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.on('error', reject);
    asked.end();
  });
}

async function endOther(pidFile: string, file: string, log: Logger): Promise<void> {
  const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
  const found = liveProcess(pid);
  const folder = file.slice(0, file.lastIndexOf('/') + 1);
  if (!found?.commandLine.includes(` serve ${folder}`) || isOn(found.commandLine, file)) return;
  log.warn({ pid }, 'ending a distribution that runs with other settings');
  process.kill(pid, 'SIGTERM');
  for (let tries = 0; tries < 200 && isAlive(found); tries += 1) await sleep(50);
  if (isAlive(found)) process.kill(pid, 'SIGKILL');
}

function isOn(commandLine: string, file: string): boolean {
  return commandLine.endsWith(` serve ${file}`);
}

function isAlive({ pid, startTime }: LiveProcess): boolean {
  return liveProcess(pid)?.startTime === startTime;
}
