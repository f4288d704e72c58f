/** The script that dpkg runs after an installation, with a systemd of this test and other paths. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

/** What a first installation prints with these settings, where all services run. */
function install(settings: string[]): string {
  const root = mkdtempSync(join(tmpdir(), 'cloudyard-postinst-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const folder of ['bin', 'etc/cloudyard', 'var/lib/cloudyard/api', 'run/systemd/system']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const program of ['systemctl', 'getent', 'chown']) {
    writeFileSync(join(root, 'bin', program), '#!/bin/sh\n');
    chmodSync(join(root, 'bin', program), 0o755);
  }
  writeFileSync(join(root, 'etc/cloudyard/cloudyard.env'), `${['DATABASE_URL=x', ...settings].join('\n')}\n`);
  const script = readFileSync('packaging/deb/files/cloudyard.postinst', 'utf8');
  const moved = script.replace(/(?<![\w.])\/(?=etc\/|var\/|run\/)/g, `${root}/`);
  const env = { PATH: `${join(root, 'bin')}:${process.env['PATH']}` };
  return execFileSync('sh', ['-c', moved, 'postinst', 'configure', ''], { env, encoding: 'utf8' });
}

it.each<[string, string[]]>([
  ['http://127.0.0.1:8080', []],
  ['http://127.0.0.1:8081', ['CLOUDYARD_PORT=8080', 'CLOUDYARD_PORT=8081']],
  ['http://127.0.0.1:80', ['CLOUDYARD_HOST=0.0.0.0', 'CLOUDYARD_PORT="80"']],
  ['http://10.0.0.1:8080', ['CLOUDYARD_HOST=10.0.0.1', '#CLOUDYARD_PUBLIC_URL=https://cloud.example.org']],
  ['http://[fd00::1]:8080', ['CLOUDYARD_HOST=fd00::1']],
  ['https://127.0.0.1:443', ['CLOUDYARD_HOST=::', 'CLOUDYARD_PORT=443', 'CLOUDYARD_TLS_CERTIFICATE=/a.pem']],
  ['https://127.0.0.1:8080', ['CLOUDYARD_ACME_DOMAINS=cloud.example.org']],
  ['https://cloud.example.org', ['CLOUDYARD_HOST=10.0.0.1', "CLOUDYARD_PUBLIC_URL='https://cloud.example.org'"]],
])('an installation prints %s with the settings %j', (url, settings) => {
  expect(install(settings)).toContain(`cloudyard: the API is ready at ${url}\n`);
});
