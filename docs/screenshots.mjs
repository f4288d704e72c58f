#!/usr/bin/env node
/**
 * Takes the pictures of the console in docs/images: `node docs/screenshots.mjs`. Starts a Cloudyard with simulated drivers and an
 * empty database in a temporary folder, creates resources through the API, and stops it. Needs Chromium.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const root = join(import.meta.dirname, '..');
const images = join(import.meta.dirname, 'images');
const token = 'screenshots$a-secret-of-the-screenshots';

/** Name of the picture, page, and what to do before it is taken. */
const PICTURES = [
  ['overview', 'overview'],
  ['create-file-share', 'file-shares/new', typeShare],
  ['load-balancer', 'load-balancers', openBalancer],
  ['lifecycle-policy', 'lifecycle-policies', openCalendar],
];

async function openBalancer(page) {
  await page.getByRole('link', { name: 'shop' }).click();
  await page.getByText('How a request flows').waitFor();
  await page.getByText('/healthz').or(page.getByText('10.1.1.1')).first().waitFor();
}

async function openCalendar(page) {
  await page.getByRole('link', { name: 'nightly' }).click();
  await page.getByRole('link', { name: 'Calendar' }).click();
  await page.getByText('coming').first().waitFor();
}

async function typeShare(page) {
  await page.getByLabel('Name', { exact: true }).fill('renders');
  await page.getByLabel('Size (GiB)').fill('500');
  await page.getByText('The same by code').click();
}

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-screenshots-'));
// As root, PostgreSQL runs as another account, which must be able to enter the folder.
chmodSync(folder, 0o755);
const server = spawn(process.execPath, [join(root, 'bin', 'cloudyard.mjs'), 'start'], {
  env: {
    ...process.env,
    CLOUDYARD_DATA_DIR: join(folder, 'data'),
    CLOUDYARD_BOOTSTRAP_TOKEN: token,
    CLOUDYARD_DEV: '1',
    CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated',
    CLOUDYARD_VOLUME_DRIVER: 'simulated',
    CLOUDYARD_REGISTRY_DRIVER: 'simulated',
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const ended = new Promise((resolve) => server.once('exit', resolve));

try {
  await takePictures(await readyUrl());
} finally {
  server.kill('SIGINT');
  await ended;
  rmSync(folder, { recursive: true });
}

/** The URL that the server prints when it is ready. */
async function readyUrl() {
  let text = '';
  for await (const chunk of server.stdout) {
    text += chunk;
    const [, url] = /^ *API +(\S+)/m.exec(text) ?? [];
    if (url) {
      server.stdout.resume();
      return url;
    }
  }
  throw new Error(`Cloudyard ended before it was ready: ${text}`);
}

async function takePictures(url) {
  await createResources(url);
  mkdirSync(images, { recursive: true });
  const executablePath = process.env.CLOUDYARD_TEST_CHROMIUM ?? '/usr/bin/chromium-headless-shell';
  const browser = await chromium.launch({ executablePath, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
  try {
    for (const colorScheme of ['light', 'dark']) {
      const page = await browser.newPage({
        viewport: { width: 1280, height: 800 },
        colorScheme,
        reducedMotion: 'reduce',
      });
      await signIn(page, url);
      for (const [name, path, prepare] of PICTURES) {
        await page.goto(`${url}/console/p/1/r/1/${path}`);
        await page.getByRole('heading').first().waitFor();
        await prepare?.(page);
        await page.getByText('simulated', { exact: true }).first().waitFor();
        await page.locator('.skeleton').first().waitFor({ state: 'detached' });
        // A clean dialog closes without a question.
        page.removeAllListeners('dialog').on('dialog', (dialog) => dialog.accept());
        await page.screenshot({ path: join(images, `console-${name}-${colorScheme}.png`) });
      }
      await page.close();
    }
  } finally {
    await browser.close();
  }
}

/** The build of a checkout may still run: the page is then not served yet. */
async function signIn(page, url) {
  const deadline = Date.now() + 60_000;
  while ((await page.goto(`${url}/console/`)).status() !== 200) {
    if (Date.now() > deadline) throw new Error('the console is not served');
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  await page.getByLabel('API token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('.frame').waitFor();
}

async function createResources(url) {
  const call = async (method, path, body) => {
    const headers = { authorization: `apikey ${token}`, 'content-type': 'application/json' };
    const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : await response.json();
  };
  const finish = async ({ tasks }) => {
    for (const id of tasks) await call('GET', `/cloud/v1/tasks/${id}?wait=30`);
  };
  const network = { network_id: (await call('GET', '/cloud/v1/networks/1/1')).results[0].id };
  const sizes = { media: 2000, backups: 12_000, 'web content': 250, 'build cache': 800, home: 400 };
  for (const [name, size] of Object.entries(sizes)) {
    const share = { name, size, protocol: 'NFS', network, tags: { team: 'web' } };
    await finish(await call('POST', '/cloud/v1/file_shares/1/1', share));
  }
  const member = (address) => ({ address, protocol_port: 8080 });
  const pool = {
    name: 'frontend',
    protocol: 'HTTP',
    lb_algorithm: 'ROUND_ROBIN',
    members: ['10.1.0.1', '10.1.0.2'].map(member),
  };
  const monitor = { type: 'HTTP', delay: 5, timeout: 2, max_retries: 3, url_path: '/healthz' };
  const database = {
    name: 'database',
    protocol: 'TCP',
    lb_algorithm: 'LEAST_CONNECTIONS',
    members: [member('10.1.1.1')],
  };
  const listeners = [
    { name: 'web', protocol: 'HTTP', protocol_port: 80, pools: [{ ...pool, healthmonitor: monitor }] },
    { name: 'postgres', protocol: 'TCP', protocol_port: 5432, pools: [database] },
  ];
  await finish(await call('POST', '/cloud/v1/loadbalancers/1/1', { name: 'shop', listeners }));
  await finish(await call('POST', '/cloud/v1/volumes/1/1', { name: 'database', size: 40, source: 'new-volume' }));
  const volume = (await call('GET', '/cloud/v1/volumes/1/1')).results[0].id;
  const schedules = [{ type: 'cron', hour: '3', minute: '30', timezone: 'Europe/Luxembourg', max_quantity: 7 }];
  const policy = { action: 'volume_snapshot', name: 'nightly', volume_ids: [volume], schedules };
  await call('POST', '/cloud/v1/lifecycle_policy/1/1', policy);
  await call('POST', '/cloudyard/v1/dev/clock', { advance_seconds: 10 * 86_400 });
  await call('POST', '/cloudyard/v1/dev/faults', { resource: 'file_share', operation: 'apply', mode: 'fail' });
  await finish(
    await call('POST', '/cloud/v1/file_shares/1/1', { name: 'scratch', size: 50, protocol: 'NFS', network }),
  );
}
