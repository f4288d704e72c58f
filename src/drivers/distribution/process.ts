/**
 * The distribution process of a data directory. It listens on a socket that only the gate (gate/) can reach.
 *
 * Started by root, it runs under its own account with the storage as its working directory. Only root can enter the
 * folders above, so the account reaches neither them nor, by a path, the storage of another data directory. The files that
 * it reads at its start are in the folder for runtime files.
 *
 * Blob descriptors are not cached: a cache would list blobs that garbage collection has deleted.
 */
import { chmod, open, stat } from 'node:fs/promises';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { basename, dirname, join, relative } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import type { Daemon } from '../../platform/daemon.ts';
import { request as httpRequest } from '../../platform/node-http.ts';
import { run } from '../command.ts';
import { accountFor, confined, runsAsRoot } from '../confined.ts';
import type { DriverError } from '../driver.ts';
import type { Owner } from '../durable-files.ts';
import type { RegistryHosting } from '../registry.ts';
import { startConfigured } from './configured.ts';
import { reportsDamage } from './damage.ts';
import { type Layout, makeFolders } from './layout.ts';
import { repair } from './repair.ts';

interface DistributionOptions {
  layout: Layout;
  program: string;
  /** The name of this host, if other hosts serve the same storage. */
  replica: string | null;
  log: Logger;
}

/** Starts or adopts distribution; one with other settings is stopped first. @throws DriverError */
export async function startDistribution(options: DistributionOptions, hosting: RegistryHosting): Promise<Daemon> {
  const { layout, program, replica, log } = options;
  const account = accountFor('registry');
  return startConfigured({
    ...{ name: 'distribution', folder: layout.distribution, log, startTimeout: 20 },
    configuration: layout.configuration,
    owner: account,
    // Extend it with a change of the configuration that must replace running processes.
    settings: [hosting, 'socket', 'urls'],
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
    socket: layout.socket,
    async beforeStart() {
      // Something may have removed them. Those of a mount are not created, because it may be lost.
      if (replica === null) await makeFolders(layout);
      if (replica !== null && (await isOwner(layout, account))) return;
      await changeOwner(layout, account, log);
      await repair(layout, log);
    },
  });
}

/**
 * Whether the storage that this host shares belongs to the account; false: no host has used it yet. Other hosts may be writing
 * to it, so it is not repaired: incomplete files are repaired when they are requested (repair.ts).
 * @throws Error if the account has other numbers on other hosts
 */
async function isOwner({ storage }: Layout, account: Owner | null): Promise<boolean> {
  const { uid, gid } = await stat(storage);
  if (!account || (uid === account.uid && gid === account.gid)) return true;
  if (uid === 0) return false;
  throw new Error(
    `the account of registries is ${account.uid}:${account.gid} on this host and ${uid}:${gid} on another one; ` +
      'give it the same numbers on all hosts of the region',
  );
}

/** Gives the account the files that an earlier version or the account of another host wrote, so that it can change them. */
async function changeOwner({ storage }: Layout, account: Owner | null, log: Logger): Promise<void> {
  if (!account) return;
  const { uid, gid } = account;
  const others = ['(', '!', '-uid', String(uid), '-o', '!', '-gid', String(gid), ')'];
  // `find` refuses to work with a PATH that has a relative folder.
  const find = ['PATH=/usr/bin:/bin', 'find', storage, ...others];
  const command = [...find, '-execdir', 'chown', '-h', `${uid}:${gid}`, '{}', '+'];
  // `find` continues after a file that it cannot read.
  await run('env', command, { timeout: 3600 }).catch((error: DriverError) => {
    const { stderr = '' } = error.cause as { stderr?: string };
    if (!reportsDamage(stderr)) throw error;
    log.error({ err: error }, 'the owner of damaged files of registries is unknown');
  });
  await chmod(storage, 0o700);
}

/** Written as JSON, which is valid YAML and needs no quoting rules. */
function configuration({ storage, socket }: Layout, hosting: RegistryHosting, bundle: string) {
  const { realm, service, issuer, httpSecret, events } = hosting;
  return JSON.stringify(
    {
      version: '0.1',
      // At level warn, distribution logs every client that has no token yet.
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
        // The path of a socket is limited to about 100 characters.
        addr: runsAsRoot() ? socket : relative(storage, socket),
        secret: httpSecret,
        // The gate and proxies in front of it have other host names.
        relativeurls: true,
        draintimeout: '5s',
        headers: { 'X-Content-Type-Options': ['nosniff'] },
      },
      auth: { token: { realm, service, issuer, rootcertbundle: bundle } },
      // Layers that clients get elsewhere, as in images of Windows. Without this, distribution refuses them with 500.
      validation: { manifests: { urls: { allow: ['^https?://'] } } },
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

/** Distribution has started with these settings once its responses contain the realm. */
async function probe({ socket }: Layout, realm: string): Promise<void> {
  await using folder = await open(dirname(socket));
  const socketPath = `/proc/self/fd/${folder.fd}/${basename(socket)}`;
  await expectRealm(
    (onResponse) => httpRequest({ socketPath, path: '/v2/', timeout: 2000, agent: false }, onResponse),
    realm,
  );
}

/** @throws Error if the response is not from a registry with this token server */
export function expectRealm(
  send: (onResponse: (response: IncomingMessage) => void) => ClientRequest,
  realm: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = send((response) => {
      response.resume();
      if (String(response.headers['www-authenticate']).includes(`realm="${realm}"`)) resolve();
      else reject(new Error('another program responds'));
    });
    request.on('timeout', () => request.destroy(new Error('the response timed out')));
    request.on('error', reject);
    request.end();
  });
}
