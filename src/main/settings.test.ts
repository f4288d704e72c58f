/** The page of settings lists each with its default. A bad value is reported by name, and all bad values at once. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { clientVariables } from '../client/contexts.ts';
import { SettingsError } from '../platform/setting-reader.ts';
import { checkoutPlaces, installedPlaces } from '../platform/program-files.ts';
import { settingsHelp } from './setting-descriptions.ts';
import { readSettings, settingNames, unknownSettings } from './settings.ts';

const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8');
const read = (env: Record<string, string>) => readSettings(env, checkoutPlaces('/checkout'), false);

/** The rows of the settings tables: the name, and the default as it is written. */
const rows = [...page.matchAll(/^\| `(CLOUDYARD_[A-Z_]+|DATABASE_URL)` \| ([^|]+) \|/gm)].map(
  ([, name = '', fallback = '']) => [name, fallback] as const,
);

describe('the documents', () => {
  it('have a row for every setting, in the order of the help', () => {
    expect(rows.map(([name]) => name)).toEqual([...settingNames]);
  });

  it('mention no unknown setting', () => {
    const written = [...page.matchAll(/`((?:CLOUDYARD_[A-Z]|DATABASE_URL)[A-Z_]*)[`=]/g)].map(([, name]) => name);
    expect(new Set(written)).toEqual(new Set(settingNames));
  });

  it.each(globSync(['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'docs/**/*.md']))(
    '%s names known settings only',
    (file) => {
      const named = readFileSync(file, 'utf8').matchAll(/\bCLOUDYARD_[A-Z][A-Z_]*[A-Z]\b/g);
      const ours = [...named].map(([name]) => name).filter((name) => !name.startsWith('CLOUDYARD_TEST_'));
      expect([...settingNames, ...clientVariables]).toEqual(expect.arrayContaining([...new Set(ours)]));
    },
  );

  const literal = rows.flatMap(([name, text]) => {
    const fallback = /^`(.+)`$/.exec(text)?.[1];
    return fallback === undefined ? [] : [[name, fallback] as const];
  });

  it.each(literal)('%s is %s unless it is set', (name, fallback) => {
    const { portIsFixed: _given, ...stated } = read({ [name]: fallback });
    const { portIsFixed: _absent, ...unset } = read({});
    expect(stated).toEqual(unset);
  });
});

describe('the help', () => {
  it('describes every setting in plain text of 80 columns', () => {
    const text = settingsHelp()!;
    const named = [...text.matchAll(/^([A-Z_]+) \(default: .+\)$/gm)].map(([, name]) => name);
    expect(named).toEqual([...settingNames]);
    const lines = text.split('\n').filter((line) => line.startsWith(' '));
    expect(lines.filter((line) => line.length > 80 || /`|\]\(/.test(line))).toEqual([]);
  });

  it('names other settings, which are not beside a setting that is shown alone', () => {
    expect(settingsHelp()).not.toMatch(/\b(next|previous) (setting|one|two|three|four|five)/);
    expect(settingsHelp('CLOUDYARD_RATE_LIMIT')).toContain('CLOUDYARD_CLIENT_REQUESTS_PER_SECOND');
  });

  it('of one setting has its default and meaning', () => {
    expect(settingsHelp('CLOUDYARD_BACKUP_KEEP')).toBe(
      'CLOUDYARD_BACKUP_KEEP (default: 7)\n    Scheduled backups that are retained, 1 to 10000.',
    );
    expect(settingsHelp('CLOUDYARD_PROT')).toBeUndefined();
  });
});

describe('settings', () => {
  it('names each invalid one on a line of its own, with the values that it accepts', () => {
    const bad = {
      CLOUDYARD_PORT: 'http',
      CLOUDYARD_DATABASE_POOL_SIZE: '1',
      CLOUDYARD_CLIENT_REQUESTS_PER_SECOND: '-1',
      CLOUDYARD_LOG_LEVEL: 'loud',
      CLOUDYARD_LOG_FORMAT: 'xml',
      CLOUDYARD_FILE_SHARE_DRIVER: 'samba',
      CLOUDYARD_NFS_PORT: '0',
      CLOUDYARD_NFS_MOUNT_PORT: '65536',
      CLOUDYARD_LOAD_BALANCER_DRIVER: 'nginx',
      CLOUDYARD_PUBLIC_URL: 'cloud.example.org',
      CLOUDYARD_REGISTRY_DRIVER: 'harbor',
      CLOUDYARD_REGISTRY_PORT: '0',
      CLOUDYARD_REGISTRY_PATIENCE_SECONDS: '0',
      CLOUDYARD_WORKER_CONCURRENCY: '1.5',
      CLOUDYARD_WORKER_PORT: '1e9',
      CLOUDYARD_SWEEP_SECONDS: '5 minutes',
    };
    const errors = errorsOf(bad);
    expect(errors.map((line) => line.split(' is ')[0]).sort()).toEqual(Object.keys(bad).sort());
    expect(errors).toContain('CLOUDYARD_PORT is "http"; it must be a whole number from 0 to 65535');
    expect(errors).toContain('CLOUDYARD_FILE_SHARE_DRIVER is "samba"; it must be one of auto, ganesha, simulated');
  });

  it.each([' ', '0x50', '1e3', '+1', '1_000', '80.0'])('a number has digits only, not %j', (text) => {
    expect(errorsOf({ CLOUDYARD_PORT: text })).toEqual([
      `CLOUDYARD_PORT is ${JSON.stringify(text)}; it must be a whole number from 0 to 65535`,
    ]);
  });

  it('a number that may be a word names the word, too', () => {
    expect(read({ CLOUDYARD_PROCESSES: 'auto' }).processes).toBeGreaterThan(0);
    expect(errorsOf({ CLOUDYARD_PROCESSES: 'Auto' })).toEqual([
      'CLOUDYARD_PROCESSES is "Auto"; it must be auto or a whole number from 1 to 64',
    ]);
  });

  it('two servers on one port are refused', () => {
    const tls = { CLOUDYARD_TLS_CERTIFICATE: 'tls.crt', CLOUDYARD_TLS_KEY: 'tls.key' };
    expect(errorsOf({ ...tls, CLOUDYARD_PORT: '443', CLOUDYARD_HTTP_REDIRECT_PORT: '443' })).toEqual([
      'CLOUDYARD_HTTP_REDIRECT_PORT conflicts with CLOUDYARD_PORT: both are 443',
    ]);
    const conflict = (port: number) => [`CLOUDYARD_NFS_MOUNT_PORT conflicts with CLOUDYARD_NFS_PORT: both are ${port}`];
    expect(errorsOf({ CLOUDYARD_NFS_MOUNT_PORT: '2049' })).toEqual(conflict(2049));
    expect(errorsOf({ CLOUDYARD_NFS_PORT: '65535' })).toEqual(conflict(65_535));
    expect(errorsOf({ CLOUDYARD_NFS_PORT: '65535', CLOUDYARD_NFS_VERSIONS: '4' })).toEqual([]);
  });

  it.each(['http://127.0.0.1', '127.0.0.1:8080', '[::1]', 'a b', '-a', ' '])('%j is not a host', (text) => {
    const names = ['CLOUDYARD_HOST', 'CLOUDYARD_NFS_HOST', 'CLOUDYARD_REGISTRY_HOST'];
    expect(errorsOf(Object.fromEntries(names.map((name) => [name, text])))).toEqual(
      names.map(
        (name) => `${name} is ${JSON.stringify(text)}; it must be a host name or an IP address, without a port`,
      ),
    );
  });

  it.each(['::', 'fe80::1%eth0', '10.0.0.5', 'nfs_1.example.com', 'a'])('%s is a host', (text) => {
    expect(read({ CLOUDYARD_HOST: text }).host).toBe(text);
  });

  it('an invalid one is named while what it belongs to is not configured', () => {
    const bad = {
      CLOUDYARD_ACME_CHALLENGE: 'http',
      CLOUDYARD_ACME_EMAIL: 'nobody',
      CLOUDYARD_ACME_SERVER: 'http://acme.example.org',
      CLOUDYARD_OIDC_SECONDS: '0',
    };
    expect(
      errorsOf(bad)
        .map((line) => line.split(' ')[0])
        .sort(),
    ).toEqual(Object.keys(bad));
  });

  it('the certificate of registries and its key come together, relative to the checkout', () => {
    const given = { CLOUDYARD_REGISTRY_TLS_CERTIFICATE: 'tls.crt', CLOUDYARD_REGISTRY_TLS_KEY: '/etc/tls.key' };
    expect(read(given).drivers.registry.tls).toEqual({ certificate: '/checkout/tls.crt', key: '/etc/tls.key' });
    expect(errorsOf({ CLOUDYARD_REGISTRY_TLS_KEY: 'tls.key' })).toHaveLength(1);
  });

  it('the public URL has no slash at its end', () => {
    expect(read({ CLOUDYARD_PUBLIC_URL: 'https://cloud.example.org/api/' }).publicUrl).toBe(
      'https://cloud.example.org/api',
    );
  });

  it.each([
    ['https://user:password@cloud.example.org', 'must not contain a user name or a password'],
    ['https://user@cloud.example.org/api', 'must not contain a user name or a password'],
    ['https://:password@cloud.example.org?a', 'must not contain a user name or a password'],
    ['https://@cloud.example.org', 'must not contain a user name or a password'],
    ['https://user:pass/word@cloud.example.org', 'must be a URL such as https://cloud.example.org'],
    ['user:password@cloud.example.org', 'must be a URL such as https://cloud.example.org'],
    ['ftp://cloud', 'is "ftp://cloud"; it must be a URL such as https://cloud.example.org'],
    ['https://cloud?a=1', 'is "https://cloud?a=1"; it must not have a query or a fragment'],
    ['https://cloud/#a', 'is "https://cloud/#a"; it must not have a query or a fragment'],
  ])('the public URL is refused without a password in the message: %s', (given, problem) => {
    expect(errorsOf({ CLOUDYARD_PUBLIC_URL: given })).toEqual([`CLOUDYARD_PUBLIC_URL ${problem}`]);
  });

  it('the public URL may have a path with an @', () => {
    const publicUrl = 'https://cloud.example.org/@api';
    expect(read({ CLOUDYARD_PUBLIC_URL: publicUrl })).toMatchObject({ publicUrl });
  });

  it('an empty one is not set', () => {
    const empty = Object.fromEntries(settingNames.map((name) => [name, '']));
    expect(read(empty)).toEqual(read({}));
  });

  it('an installed package keeps its data in the XDG data directory', () => {
    const dataDir = (env: Record<string, string>) => readSettings(env, installedPlaces(env), false).dataDir;
    expect(dataDir({ HOME: '/home/ann' })).toBe('/home/ann/.local/share/cloudyard');
    expect(dataDir({ HOME: '/home/ann', XDG_DATA_HOME: '/data' })).toBe('/data/cloudyard');
    expect(dataDir({ HOME: '/home/ann', XDG_DATA_HOME: 'data' })).toBe('/home/ann/.local/share/cloudyard');
    expect(dataDir({ HOME: '/home/ann', CLOUDYARD_DATA_DIR: 'mine' })).toBe(join(process.cwd(), 'mine'));
  });

  it('a data directory is relative to the checkout', () => {
    expect(read({}).dataDir).toBe('/checkout/data');
    expect(read({ CLOUDYARD_DATA_DIR: 'other' }).dataDir).toBe('/checkout/other');
    expect(read({ CLOUDYARD_DATA_DIR: '/srv/cloudyard' }).dataDir).toBe('/srv/cloudyard');
  });

  it('the key file is in the data directory, or where it is said to be', () => {
    expect(read({}).keyFile).toBe('/checkout/data/secret.keys');
    expect(read({ CLOUDYARD_DATA_DIR: '/srv/cloudyard' }).keyFile).toBe('/srv/cloudyard/secret.keys');
    expect(read({ CLOUDYARD_KEY_FILE: '/etc/cloudyard.keys' }).keyFile).toBe('/etc/cloudyard.keys');
  });

  it('shares are mounted from where the API listens, and from loopback where that is everywhere', () => {
    expect(read({ CLOUDYARD_HOST: '10.0.0.5' }).drivers.fileShare.host).toBe('10.0.0.5');
    expect(read({ CLOUDYARD_HOST: '0.0.0.0' }).drivers.fileShare.host).toBe('127.0.0.1');
    expect(read({ CLOUDYARD_HOST: '::' }).drivers.fileShare.host).toBe('127.0.0.1');
    expect(read({ CLOUDYARD_HOST: '::', CLOUDYARD_NFS_HOST: 'nfs.example' }).drivers.fileShare.host).toBe(
      'nfs.example',
    );
  });

  it('the mount port follows the NFS port', () => {
    expect(read({}).drivers.fileShare.mountPort).toBe(20_048);
    expect(read({ CLOUDYARD_NFS_PORT: '12049' }).drivers.fileShare.mountPort).toBe(12_050);
    expect(read({ CLOUDYARD_NFS_PORT: '12049', CLOUDYARD_NFS_MOUNT_PORT: '13000' }).drivers.fileShare.mountPort).toBe(
      13_000,
    );
  });

  it('the bootstrap token has a secret', () => {
    for (const token of ['ci$secret', 'secret', 'ci$secret$']) {
      expect(read({ CLOUDYARD_BOOTSTRAP_TOKEN: token }).bootstrapToken).toBe(token);
    }
    for (const token of ['ci$', '$', 'ci$a b']) {
      expect([token, errorsOf({ CLOUDYARD_BOOTSTRAP_TOKEN: token }).length]).toEqual([token, 1]);
    }
  });

  it('the database is a PostgreSQL, and no message shows the password', () => {
    const url = 'postgresql://cloudyard:hidden@10.0.0.1,10.0.0.2/cloudyard';
    expect(read({ DATABASE_URL: url }).databaseUrl).toBe(url);
    for (const bad of ['mysql://cloudyard:hidden@127.0.0.1/cloudyard', '127.0.0.1:5432/cloudyard']) {
      expect(errorsOf({ DATABASE_URL: bad })).toEqual([
        'DATABASE_URL must be a URL such as postgres://user:password@127.0.0.1:5432/database',
      ]);
    }
  });

  it('a terminal gets readable logs by default', () => {
    expect(readSettings({}, checkoutPlaces('/checkout'), true).logFormat).toBe('pretty');
    expect(readSettings({ CLOUDYARD_LOG_FORMAT: 'json' }, checkoutPlaces('/checkout'), true).logFormat).toBe('json');
    expect(read({}).logFormat).toBe('json');
  });

  it('of the mail server belong together, and no message shows the password', () => {
    const url = 'smtp://user:hunter2@mail.example.com:587';
    expect(read({ CLOUDYARD_SMTP_URL: url, CLOUDYARD_SMTP_FROM: 'Cloudyard <a@example.com>' }).drivers.email.url).toBe(
      url,
    );
    expect(errorsOf({ CLOUDYARD_SMTP_URL: url })).toEqual([
      'CLOUDYARD_SMTP_FROM is required when CLOUDYARD_SMTP_URL is set',
    ]);
    const from = { CLOUDYARD_SMTP_FROM: 'a@example.com' };
    for (const bad of ['mail.example.com', 'http://user:hunter2@example.com', 'smtp://', 'smtp:hunter2']) {
      const errors = errorsOf({ ...from, CLOUDYARD_SMTP_URL: bad });
      expect([bad, errors]).toEqual([bad, [expect.stringMatching(/^CLOUDYARD_SMTP_URL must be a URL such as/)]]);
      expect(errors.join()).not.toContain('hunter2');
    }
    for (const bad of ['nobody', 'a@b\r\nBcc: c@d', 'a@example.com, b@example.com', 'A <a@example.com']) {
      expect([bad, errorsOf({ CLOUDYARD_SMTP_FROM: bad }).length]).toEqual([bad, 1]);
    }
  });

  it('one that is misspelled is noticed', () => {
    expect(unknownSettings({ CLOUDYARD_PROT: '1', CLOUDYARD_PORT: '1', HOME: '/root' })).toEqual(['CLOUDYARD_PROT']);
  });

  it('those of the tests are not taken for misspelled ones', () => {
    expect(unknownSettings({ CLOUDYARD_TEST_PYTHON: 'python3', CLOUDYARD_TEST_CHROMIUM: 'chromium' })).toEqual([]);
  });
});

function errorsOf(env: Record<string, string>): string[] {
  try {
    read(env);
  } catch (error) {
    if (error instanceof SettingsError) return error.message.split('\n');
    throw error;
  }
  return [];
}
