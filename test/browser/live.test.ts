/** What the open page shows of changes by others, of lost connections and of restarts. */
import { createServer, type IncomingMessage, request as send, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loaded, newToken, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const shares = '/cloud/v1/file_shares/1/1';
/** Much shorter than the idle timeouts of proxies. */
const CUT_MS = 300;
/** Longer than changes are collected. */
const SLOW_MS = 800;

async function newShare(name: string): Promise<string> {
  const { yard } = consoleOf;
  const networks = await yard.get('/cloud/v1/networks/1/1');
  const network = { network_id: networks.body.results[0].id };
  const task = await yard.ended(await yard.insist('POST', shares, { name, protocol: 'NFS', size: 1, network }));
  return task.created_resources.file_shares[0];
}

describe('an open page', () => {
  it('shows what another client creates and deletes', async () => {
    const page = await open('file-shares');
    await page.getByText('No file shares yet').waitFor();
    await page.getByRole('button', { name: 'Account and settings' }).click();
    await page.getByText('live', { exact: true }).waitFor();
    const id = await newShare('by-another');
    await page.getByRole('link', { name: 'by-another' }).waitFor();
    await consoleOf.yard.delete(`${shares}/${id}`);
    await page.getByRole('link', { name: 'by-another' }).waitFor({ state: 'detached' });
  });

  it.each<[string, 'POST' | 'PUT', string, object, string]>([
    ['api-keys', 'POST', '/cloud/v1/caas/keys/1/1', { name: 'other-key', containers: [] }, 'other-key'],
    ['projects', 'POST', '/cloud/v1/projects', { name: 'other-project' }, 'other-project'],
    ['user-actions', 'POST', '/cloud/v1/caas/keys/1/1', { name: 'acted-key', containers: [] }, 'acted-key'],
    ['quotas', 'PUT', '/cloud/v2/client_quotas/1/notification_threshold', { threshold: 71 }, '71 %'],
  ])('of %s shows a change by another client', async (path, method, url, body, text) => {
    const page = await open(path);
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await loaded(page);
    await consoleOf.yard.insist(method, url, body);
    await page.locator('main').getByText(text).first().waitFor();
  });

  it('shows the new name of another project, in the list and in the switcher', async () => {
    const { body } = await consoleOf.yard.post('/cloud/v1/projects', { name: 'named-once' });
    const page = await open('projects');
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await page.getByRole('link', { name: 'named-once', exact: true }).waitFor();
    await consoleOf.yard.patch(`/cloud/v1/projects/${body.id}`, { name: 'named-twice' });
    await page.getByRole('link', { name: 'named-twice', exact: true }).waitFor();
    await page.getByRole('option', { name: 'named-twice' }).waitFor({ state: 'attached' });
  });

  it('that a token has no access to is not read again', async () => {
    const page = await open('audit', { token: await newToken(consoleOf.yard, 'member') });
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await page.getByRole('heading', { name: 'No access' }).waitFor();
    let reads = 0;
    page.on('request', (request) => (reads += Number(request.url().includes('/cloudyard/v1/audit'))));
    const tasks = page.waitForRequest((request) => request.url().includes('/cloud/v1/tasks/1/1/active'));
    await newShare('refreshes-others');
    await tasks;
    expect(reads).toBe(0);
  });

  it('shows an event within 1 s', async () => {
    const page = await open('file-shares');
    await page.getByRole('button', { name: 'Account and settings' }).click();
    await page.getByText('live', { exact: true }).waitFor();
    const id = await newShare('named-0');
    await page.getByRole('link', { name: 'named-0' }).waitFor();
    const durations: number[] = [];
    for (const name of ['named-1', 'named-2', 'named-3']) {
      await consoleOf.yard.patch(`${shares}/${id}`, { name });
      const began = performance.now();
      await page.getByRole('link', { name }).waitFor();
      durations.push(performance.now() - began);
    }
    // The fastest of three, because other tests use the same processors. Without events it is polled every 5 s.
    expect(Math.min(...durations)).toBeLessThan(1000);
  });

  it('shows changes that are more frequent than its reads are fast', async () => {
    const { yard } = consoleOf;
    const networks = '/cloud/v1/networks/1/1';
    const { body } = await yard.get(networks);
    const page = await open('networks');
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await page.route(/\/networks\/1\/1\?/, async (route) => {
      await sleep(SLOW_MS);
      await route.continue();
    });
    let isShown = false;
    const shown = page.getByRole('link', { name: /^busy-/ }).waitFor();
    void shown.then(
      () => (isShown = true),
      () => {},
    );
    for (let count = 0; count < 20 && !isShown; count += 1) {
      await yard.insist('PATCH', `${networks}/${body.results[0].id}`, { name: `busy-${count}` });
      await sleep(SLOW_MS / 4);
    }
    expect(isShown).toBe(true);
  });

  it('says that a share was deleted elsewhere, and keeps what was typed', async () => {
    const id = await newShare('deleted-elsewhere');
    const page = await open(`file-shares/${id}/edit`);
    await page.getByLabel('Name', { exact: true }).fill('new-name');
    await consoleOf.yard.ended(await consoleOf.yard.delete(`${shares}/${id}`));
    await page.getByRole('button', { name: 'Save' }).click();
    await page
      .getByRole('alert')
      .getByText(/not found|does not exist|no file share/i)
      .first()
      .waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('new-name');
  });

  it('keeps a form over a restart of the server, and then sends it', async () => {
    const page = await open('file-shares/new');
    await page.getByLabel('Name', { exact: true }).fill('after-restart');
    await consoleOf.restart();
    await page.getByRole('dialog').getByRole('button', { name: 'Create file share' }).click();
    await page.getByRole('link', { name: 'after-restart' }).waitFor();
  });
});

describe('a server that is killed', () => {
  it('loses nothing that was typed, and the page recovers by itself', async () => {
    const page = await open('file-shares/new');
    const name = page.getByLabel('Name', { exact: true });
    const create = page.getByRole('dialog').getByRole('button', { name: 'Create file share' });
    await name.fill('after-crash');
    // The networks are loaded: without them the form would name the missing network.
    await create.click({ trial: true });
    await consoleOf.crash(async () => {
      await create.click();
      await page.getByRole('alert').getByText('the server is not reachable').waitFor();
    });
    // Behind the dialog, without a click or a reload.
    await newShare('while-recovering');
    await page.locator('main').getByText('while-recovering').waitFor();
    expect(await name.inputValue()).toBe('after-crash');
    await create.click();
    await page.getByRole('link', { name: 'after-crash' }).waitFor();
  });
});

const notice = 'The server is not available';
const FLOOD_MS = 3000;
/** Less than a request waits for the end of a task. */
const SOON_MS = 8000;
const ONE_TASK = /\/cloud\/v1\/tasks\/[\w-]{36}(\?|$)/;
/** Each read of the page is repeated every few seconds, after one attempt at once. */
const MOST_REQUESTS = 60;

describe('a server that cannot read, such as during a failover of its database', () => {
  it('leaves a resource and its parts on the page, which recovers by itself', async () => {
    const { yard } = consoleOf;
    const id = await newShare('still-shown');
    const page = await open(`file-shares/${id}?tab=access`);
    await page.getByText('Nobody may mount this share').waitFor();
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    const refused = { share: 0, rules: 0 };
    const path = `**/file_shares/1/1/${id}**`;
    await page.route(path, (route) => {
      refused[route.request().url().includes('access_rule') ? 'rules' : 'share'] += 1;
      return route.fulfill({ status: 503, json: { message: 'the database is not reachable' } });
    });
    await yard.patch(`${shares}/${id}`, { name: 'not-yet-shown' });
    // The first attempt and the second one of both.
    await expect.poll(() => Math.min(refused.share, refused.rules)).toBeGreaterThanOrEqual(2);
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    expect(await page.getByRole('heading', { name: 'still-shown' }).isVisible()).toBe(true);
    expect(await page.getByText('Nobody may mount this share').isVisible()).toBe(true);
    await page.locator('main').getByText(notice).waitFor();
    await page.unroute(path);
    await page.getByRole('heading', { name: 'not-yet-shown' }).waitFor();
    await page.locator('main').getByText(notice).waitFor({ state: 'detached' });
  });

  it('is not flooded with requests', async () => {
    // The price of the form is a POST.
    const page = await open('volumes/new');
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    let requests = 0;
    await page.route(/\/(cloud|cloudyard|healthz)\//, (route) => {
      requests += 1;
      return route.fulfill({ status: 503, json: { message: 'the database is not reachable' } });
    });
    await page.getByLabel('Size (GiB)').fill('11');
    // The stream is opened again, as after its end.
    await page.evaluate('dispatchEvent(new Event("online"))');
    await page.locator('main').getByText(notice).waitFor({ state: 'attached' });
    const before = requests;
    await sleep(FLOOD_MS);
    expect(requests - before).toBeLessThan(MOST_REQUESTS);
  });
});

describe('a lost connection', () => {
  it('is shown, keeps the page and what was typed, and ends by itself', async () => {
    const page = await open('networks/new', { ownContext: true });
    const name = page.getByLabel('Name', { exact: true });
    await name.fill('typed-offline');
    await page.context().setOffline(true);
    await page.locator('main').getByText(notice).waitFor({ state: 'attached' });
    // A part of the page that was not loaded yet.
    await page.getByText('The same by code').click();
    await page.context().setOffline(false);
    await page.getByRole('tab', { name: 'Python' }).waitFor();
    await page.locator('main').getByText(notice).waitFor({ state: 'detached' });
    expect(await name.inputValue()).toBe('typed-offline');
  });

  it('that returns right after a part could not be loaded keeps the page and what was typed', async () => {
    const page = await open('networks/new', { ownContext: true });
    const name = page.getByLabel('Name', { exact: true });
    await name.fill('typed-before');
    await page.route('**/assets/code-tabs-*', (route) => route.abort(), { times: 1 });
    await page.getByText('The same by code').click();
    await page.getByRole('tab', { name: 'Python' }).waitFor();
    expect(await name.inputValue()).toBe('typed-before');
  });

  it('does not prevent a navigation, which ends when the server is reachable', async () => {
    const page = await open('networks', { ownContext: true });
    await page.getByRole('heading', { name: 'Networks', level: 1 }).waitFor();
    await page.context().setOffline(true);
    await page.getByText(notice).waitFor();
    await page.getByRole('link', { name: 'Subnets', exact: true }).click();
    await page.context().setOffline(false);
    await page.getByRole('heading', { name: 'Subnets', level: 1 }).waitFor();
    await page.getByText(notice).waitFor({ state: 'detached' });
  });
});

describe('a server that does not respond', () => {
  /** Longer than a page waits before it says so, and than a read waits. */
  const [LATE_MS, GIVE_UP_MS] = [21_000, 61_000];

  it('is shown, and reads are repeated over another connection', async () => {
    const page = await open('networks', { ownContext: true });
    await loaded(page);
    await page.clock.install();
    let reads = 0;
    await page.route('**/cloud/v1/subnets/1/1?*', (route) => ((reads += 1) === 1 ? undefined : route.continue()));
    await page.getByRole('link', { name: 'Subnets', exact: true }).click();
    await expect.poll(() => reads).toBe(1);
    await page.clock.fastForward(LATE_MS);
    await page.getByText(notice).waitFor();
    await page.clock.fastForward(GIVE_UP_MS - LATE_MS);
    await page.getByRole('table', { name: 'Subnets' }).waitFor();
    await page.getByText(notice).waitFor({ state: 'detached' });
  });

  it('is shown while a part of the console is loaded', async () => {
    const page = await open('networks', { ownContext: true });
    await loaded(page);
    await page.clock.install();
    const pending: Route[] = [];
    let isHanging = true;
    await page.route('**/assets/*', (route) => (isHanging ? void pending.push(route) : route.continue()));
    await page.getByRole('link', { name: 'Subnets', exact: true }).click();
    await expect.poll(() => pending.length).toBeGreaterThan(0);
    await page.clock.fastForward(LATE_MS);
    await page.getByText(notice).waitFor();
    isHanging = false;
    for (const route of pending) await route.continue();
    await page.getByRole('table', { name: 'Subnets' }).waitFor();
    await page.getByText(notice).waitFor({ state: 'detached' });
  });
});

describe('a task that is followed', () => {
  it('is followed to its end when the connection returns', async () => {
    const page = await open('volumes/new', { ownContext: true });
    await page.clock.install();
    let reads = 0;
    await page.route(ONE_TASK, (route) => {
      reads += 1;
      return route.abort();
    });
    await page.getByLabel('Name', { exact: true }).fill('followed');
    await page.getByRole('dialog').getByRole('button', { name: 'Create volume' }).click();
    for (let count = 1; count <= 10; count += 1) {
      await expect.poll(() => reads).toBeGreaterThanOrEqual(count);
      await page.clock.fastForward(5000);
    }
    await page.unroute(ONE_TASK);
    await page.clock.fastForward(5000);
    await page.locator('.toast.ok').getByText('Created volume followed').waitFor();
  });

  it('leaves the page usable with many others, although a browser opens few connections to a server', async () => {
    const { yard } = consoleOf;
    const faults = '/cloudyard/v1/dev/faults';
    await yard.insist('POST', faults, { resource: 'volume', operation: 'apply', mode: 'stall', count: 6 });
    const page = await open('volumes');
    for (let count = 1; count <= 6; count += 1) {
      await page.getByRole('link', { name: 'Create volume' }).click();
      await page.getByLabel('Name', { exact: true }).fill(`stalled-${count}`);
      await page.getByLabel('Size (GiB)').fill('1');
      await page.getByRole('dialog').getByRole('button', { name: 'Create volume' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    const read = page.waitForResponse((response) => response.url().includes('/subnets/1/1'), { timeout: SOON_MS });
    await page.getByRole('link', { name: 'Subnets', exact: true }).click();
    await read;
    await yard.delete(faults);
    await page
      .locator('.toast.ok')
      .getByText(/^Created volume stalled-/)
      .first()
      .waitFor();
  });
});

describe('behind a proxy', () => {
  /** What the proxy does with event streams: refuse them, or cut each when its first bytes have passed. */
  let streams: 'refused' | 'cut' = 'refused';
  let cuts = 0;
  let proxy: Server;
  beforeAll(async () => {
    proxy = createServer((incoming, outgoing) => {
      const isStream = incoming.url?.startsWith('/cloudyard/v1/events');
      if (isStream && streams === 'refused') return void incoming.socket.destroy();
      const { method, url, headers } = incoming;
      const forward = send(`${consoleOf.yard.url}${url}`, { method, headers }, (answer: IncomingMessage) => {
        outgoing.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(outgoing);
        if (!isStream) return;
        outgoing.once('close', () => forward.destroy());
        answer.once('data', () => {
          cuts += 1;
          setTimeout(() => outgoing.destroy(), CUT_MS);
        });
      });
      forward.on('error', () => outgoing.destroy());
      incoming.pipe(forward);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => void proxy.close());

  const openByProxy = async () => {
    const page = await open('file-shares', { origin: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    await page.getByRole('button', { name: 'Account and settings' }).click();
    return page;
  };

  it('that refuses event streams the page polls', async () => {
    streams = 'refused';
    const page = await openByProxy();
    await page.getByText('every 5 seconds').waitFor();
    await newShare('polled');
    await page.getByRole('link', { name: 'polled' }).waitFor();
  });

  it('that cuts event streams the page opens them again and misses nothing', async () => {
    streams = 'cut';
    const page = await openByProxy();
    await page.getByText('live', { exact: true }).waitFor();
    const before = cuts;
    for (const name of ['between-1', 'between-2', 'between-3']) {
      await newShare(name);
      await page.getByRole('link', { name }).waitFor();
    }
    await expect.poll(() => cuts).toBeGreaterThan(before);
    await page.getByText('live', { exact: true }).waitFor();
  });
});
