/**
 * The one distribution of this data directory. It listens on a socket that only the gate (gate/) can reach.
 *
 * Root's runs under an account of its own, from within its storage (its working directory): the folders above it are
 * root's alone, so that the account reaches neither them nor, by a path, the storage of another data directory. What it
 * reads at its start lies in the folder for runtime files.
 *
 * No cache of blob descriptors: it would go on naming blobs that garbage collection took away.
 */
import { chmod, open } from 'node:fs/promises';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { basename, dirname, join, relative } from 'node:path';
import type { Logger } from 'pino';
import type { Daemon } from '../../platform/daemon.ts';
import { run } from '../command.ts';
import { accountFor, confined, runsAsRoot } from '../confined.ts';
import type { Owner } from '../durable-files.ts';
import type { RegistryHosting } from '../registry.ts';
import { startConfigured } from './configured.ts';
import type { Layout } from './layout.ts';
import { repair } from './repair.ts';

export interface DistributionOptions {
  layout: Layout;
  program: string;
  log: Logger;
}

/** Writes the settings down, ends one that runs with others, and starts or adopts. @throws DriverError */
export async function startDistribution(options: DistributionOptions, hosting: RegistryHosting): Promise<Daemon> {
  const { layout, program, log } = options;
  const account = accountFor('registry');
  return startConfigured({
    ...{ name: 'distribution', folder: layout.distribution, log, startTimeout: 20 },
    configuration: layout.configuration,
    owner: account,
    settings: [hosting, 'socket'],
    files: (name) => ({
      [`${name}.crt`]: hosting.certificate,
      [`${name}.yml`]: configuration(layout, hosting, join(layout.configuration, `${name}.crt`)),
    }),
    command: (name) => ({
      ...confined({ file: program, args: ['serve', join(layout.configuration, `${name}.yml`)] }, account, []),
      cwd: layout.storage,
      env: { TMPDIR: layout.temporary },
    }),
    probe: () => probe(layout, hosting.realm),
    async beforeStart() {
      await takeOver(layout, account);
      await repair(layout, log);
    },
  });
}

/** What an earlier version or another host's account wrote becomes the account's, or it could not change it. */
async function takeOver({ storage }: Layout, account: Owner | null): Promise<void> {
  if (!account) return;
  const { uid, gid } = account;
  const others = ['(', '!', '-uid', String(uid), '-o', '!', '-gid', String(gid), ')'];
  // `find` refuses to work with a PATH that has a relative folder.
  const find = ['PATH=/usr/bin:/bin', 'find', storage, ...others];
  await run('env', [...find, '-execdir', 'chown', '-h', `${uid}:${gid}`, '{}', '+'], { timeout: 3600 });
  await chmod(storage, 0o700);
}

/** JSON is YAML, and quotes by itself. */
function configuration({ storage, socket }: Layout, hosting: RegistryHosting, bundle: string) {
  const { realm, service, issuer, httpSecret, events } = hosting;
  return JSON.stringify(
    {
      version: '0.1',
      // It warns of every client that has no token yet.
      log: { level: 'error', formatter: 'json', accesslog: { disabled: true } },
      storage: {
        // Its working directory.
        filesystem: { rootdirectory: '.' },
        delete: { enabled: true },
        redirect: { disable: true },
        // collect.ts removes abandoned uploads.
        maintenance: { uploadpurging: { enabled: false } },
      },
      http: {
        net: 'unix',
        // The name of a socket has a hundred characters at most.
        addr: runsAsRoot() ? socket : relative(storage, socket),
        secret: httpSecret,
        // The gate and what is in front of it have other names.
        relativeurls: true,
        draintimeout: '5s',
        headers: { 'X-Content-Type-Options': ['nosniff'] },
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

/** Answers, and sends clients to our realm: so it has started with these settings. */
async function probe({ socket }: Layout, realm: string): Promise<void> {
  const folder = await open(dirname(socket));
  try {
    const socketPath = `/proc/self/fd/${folder.fd}/${basename(socket)}`;
    await expectRealm(
      (answered) => httpRequest({ socketPath, path: '/v2/', timeout: 2000, agent: false }, answered),
      realm,
    );
  } finally {
    await folder.close();
  }
}

/** @throws when the answer is not one of a registry with this token server */
export function expectRealm(
  ask: (answered: (answer: IncomingMessage) => void) => ClientRequest,
  realm: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = ask((answer) => {
      answer.resume();
      if (String(answer.headers['www-authenticate']).includes(`realm="${realm}"`)) resolve();
      else reject(new Error('another program answers'));
    });
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.on('error', reject);
    asked.end();
  });
}
