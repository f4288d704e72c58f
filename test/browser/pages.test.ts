/** What holds for every page of console/src/pages.ts: a new page is checked without a line here. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { checkPage, loaded, newToken, useConsole } from './console.ts';

interface ConsolePage {
  readonly title: string;
  readonly path: string;
  readonly operatorOnly?: boolean;
  readonly developmentOnly?: boolean;
  readonly create?: { readonly path: string };
}

// By a name that is computed: the sources of the console have compiler options of their own.
const { pages } = (await import(join(root, 'console', 'src', 'pages.ts'))) as { pages: readonly ConsolePage[] };

const consoleOf = useConsole();
const { open } = consoleOf;
const LOOP_MS = 300_000;
const WIDTHS = [360, 2560];
const HEIGHT = 800;
const READ_ONLY = 'The token of this session is read-only';

// Names of shares are restricted; those of secrets and all tags are not.
const hostileText = '<img src=x onerror=alert(1)> \u05e9\u05dc\u05d5\u05dd 🎉';
const longName = '\u05e9'.repeat(255);
const tags = { ['k'.repeat(255)]: 'v'.repeat(255), '<b>\u05e9🎉</b>': hostileText };

/** The first resources of the project, so that lists have rows. */
beforeAll(async () => {
  const { yard } = consoleOf;
  const networks = await yard.get('/cloud/v1/networks/1/1');
  const network = { network_id: networks.body.results[0].id };
  const share = { name: 'with-tags', protocol: 'NFS', size: 1, network, tags };
  await yard.ended(await yard.post('/cloud/v1/file_shares/1/1', share));
  const payload = { payload: 'c2VjcmV0', payload_content_encoding: 'base64', payload_content_type: 'text/plain' };
  for (const name of [hostileText, longName])
    await yard.ended(await yard.post('/cloud/v1/secrets/1/1', { name, secret_type: 'opaque', ...payload }));
});

/** The list and the create dialog of each page, as paths of the first project and region. */
const views = pages.flatMap(({ path, create }) => [path, ...(create ? [create.path] : [])]);

/** As a link does, without loading the console again. A page or dialog that appears sets the title. */
async function goTo(page: Page, path: string): Promise<void> {
  const target = `/console/p/1/r/1/${path}`;
  if (new URL(page.url()).pathname !== target) {
    await page.evaluate(`document.title = ''; history.pushState({}, '', ${JSON.stringify(target)})`);
    await expect.poll(() => page.title()).toMatch(/ · Cloudyard$/);
  }
  await settled(page);
}

/** Waits until the page shows its data. */
async function settled(page: Page): Promise<void> {
  await page.locator('main h1').first().waitFor({ state: 'attached' });
  await loaded(page);
}

/** How far the document is wider than the window, in CSS pixels. */
const overflowOf = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

async function problemsOf(page: Page, path: string): Promise<string[]> {
  const problems: string[] = [];
  const dialogs = await page.locator('dialog[open]').count();
  const isDialog = !pages.some((each) => each.path === path);
  if (dialogs !== Number(isDialog)) problems.push(`${path}: ${dialogs} dialogs are open`);
  await checkPage(page).catch((error: unknown) => problems.push(`${path}: ${String(error)}`));
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: HEIGHT });
    const overflow = await overflowOf(page);
    if (overflow !== 0) problems.push(`${path}: ${overflow} px wider than a window of ${width} px`);
  }
  await page.setViewportSize({ width: 1280, height: HEIGHT });
  return problems;
}

describe('every page', () => {
  it('and its create dialog is accessible in light and dark, and fits 360 and 2560 px', {
    timeout: LOOP_MS,
  }, async () => {
    const page = await open('overview');
    const problems: string[] = [];
    for (const path of views) {
      await goTo(page, path);
      problems.push(...(await problemsOf(page, path)));
    }
    expect(views.length).toBeGreaterThan(pages.length);
    expect(problems).toEqual([]);
  });

  it('differs between light and dark in nothing but colors', () => {
    const assets = globSync(join(root, 'console', 'dist', 'assets', '*.{css,js}')).map((file) =>
      readFileSync(file, 'utf8'),
    );
    // Otherwise a query for the color scheme could change anything. `light-dark()` chooses colors.
    expect(assets.filter((text) => text.includes('prefers-color-scheme'))).toEqual([]);
    const themes = assets.flatMap((text) => text.match(/[^{}]*\[data-theme[^{}]*\{[^{}]*\}/g) ?? []).sort();
    expect(themes).toEqual(['dark', 'light'].map((theme) => `:root[data-theme=${theme}]{color-scheme:${theme}}`));
  });

  it('is reached from the navigation, and announces itself', { timeout: LOOP_MS }, async () => {
    const page = await open('overview');
    const navigation = page.getByRole('navigation', { name: 'Main' });
    for (const { title, path } of pages) {
      await navigation.getByRole('link', { name: title, exact: true }).click();
      await settled(page);
      await expect.poll(() => page.title()).toContain(title);
      expect(new URL(page.url()).pathname).toBe(`/console/p/1/r/1/${path}`);
    }
  });

  it('offers a reader no creation, with the reason', { timeout: LOOP_MS }, async () => {
    const page = await open('overview', { token: await newToken(consoleOf.yard, 'reader') });
    const creating = pages.filter(({ create, operatorOnly }) => create && !operatorOnly);
    for (const { path, create } of creating) {
      await goTo(page, path);
      expect({ path, links: await page.locator(`main a.button[href$="/${create!.path}"]`).count() }).toEqual({
        path,
        links: 0,
      });
      expect({ path, reasons: await page.locator(`[title="${READ_ONLY}"]`).count() }).not.toEqual({ path, reasons: 0 });
      await goTo(page, create!.path);
      const submit = page.locator('dialog[open] button[type=submit]').first();
      await submit.waitFor();
      expect({ path, disabled: await submit.getAttribute('aria-disabled') }).toEqual({ path, disabled: 'true' });
      await page.locator('dialog[open]').getByText(READ_ONLY).first().waitFor();
    }
  });
});

describe('a page of a list', () => {
  it('that does not exist any more becomes the last one', async () => {
    const page = await open('tasks?page=99');
    await page.getByRole('link', { name: 'Create file share' }).first().waitFor();
    expect(new URL(page.url()).searchParams.get('page')).toBe('1');
  });
});

describe('a page that needs another role', () => {
  it('says so, and offers no further attempt', async () => {
    const page = await open('overview', { token: await newToken(consoleOf.yard, 'reader') });
    for (const path of ['tokens', 'webhooks', 'audit']) {
      await goTo(page, path);
      await page.getByRole('heading', { name: 'No access' }).waitFor();
      await page.getByText(/requires the role \w+; the token has the role reader/).waitFor();
      expect({ path, buttons: await page.getByRole('button', { name: 'Try again' }).count() }).toEqual({
        path,
        buttons: 0,
      });
    }
    const links = await page.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();
    for (const title of ['Tokens', 'Audit log', 'Webhooks']) expect(links).not.toContain(title);
  });

  it.each([
    ['reader', { role: 'reader' }],
    ['member', { role: 'member' }],
    ['admin of one project', { role: 'admin', project_ids: [1] }],
  ])('or all projects is not in the navigation: %s', { timeout: LOOP_MS }, async (name, rights) => {
    const { body } = await consoleOf.yard.insist('POST', '/cloudyard/v1/tokens', { name, ...rights });
    const page = await open('overview', { token: body.token });
    const refused: string[] = [];
    page.on('response', (response) => {
      if (response.status() === 403) refused.push(`${new URL(page.url()).pathname}: ${response.url()}`);
    });
    const links = page.getByRole('navigation', { name: 'Main' }).locator('li a');
    const targets = await links.evaluateAll((all: { href: string }[]) => all.map(({ href }) => new URL(href).pathname));
    for (const target of targets) {
      await goTo(page, target.replace('/console/p/1/r/1/', ''));
      if (await page.getByRole('heading', { name: 'No access' }).count()) refused.push(`${target}: No access`);
    }
    expect(targets.length).toBeGreaterThan(15);
    expect(refused).toEqual([]);
  });
});

describe('a resource', () => {
  it('offers a reader no action, with the reason', async () => {
    const page = await open('overview', { token: await newToken(consoleOf.yard, 'reader') });
    for (const [list, name] of [
      ['file-shares', 'with-tags'],
      ['secrets', longName],
    ] as const) {
      await goTo(page, list);
      await page.getByRole('link', { name }).click();
      await page.getByRole('heading', { name }).waitFor();
      const head = page.locator('.page-head');
      expect(await head.locator('a.button').count()).toBe(0);
      expect(await head.locator(`button[aria-disabled=true][title="${READ_ONLY}"]`).count()).toBeGreaterThan(0);
    }
  });

  it('without parts offers a reader no creation of one', async () => {
    const { yard } = consoleOf;
    const task = await yard.ended(await yard.insist('POST', '/cloud/v1/loadbalancers/1/1', { name: 'no-listeners' }));
    const id = task.created_resources.loadbalancers[0];
    const page = await open(`load-balancers/${id}`, { token: await newToken(yard, 'reader') });
    await page.getByText('No listeners yet').waitFor();
    expect(await page.getByRole('link', { name: 'Create listener' }).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Create listener' }).getAttribute('title')).toBe(READ_ONLY);
  });
});

describe('an action that needs the role admin', () => {
  const NOT_ADMIN = 'The token of this session does not have the role admin';

  it.each([
    ['tokens', 'Create token'],
    ['webhooks', 'Create webhook'],
    ['webhooks', 'Edit addresses'],
    ['clients', 'Create client'],
    ['development', 'Inject fault'],
    ['development', 'Advance 1 day'],
    ['quotas', 'Approve'],
  ])('of %s is not offered to a member: %s', async (path, name) => {
    const limits = { regional_limits: [{ region_id: 1, volume_count_limit: 5000 }] };
    await consoleOf.yard.insist('POST', '/cloud/v2/limits_request', { description: 'more', requested_limits: limits });
    const page = await open(path, { token: await newToken(consoleOf.yard, 'member') });
    const button = page.getByRole('button', { name }).first();
    await button.waitFor();
    expect(await button.getAttribute('title')).toBe(NOT_ADMIN);
    expect(await button.isDisabled()).toBe(true);
  });

  it.each([
    ['projects', 'Create project'],
    ['quotas', 'Edit threshold'],
    ['quotas', 'Request higher limits'],
    ['webhooks', 'Create webhook'],
  ])('of %s is not offered to an admin of some projects: %s', async (path, name) => {
    const limited = { name: 'limited', role: 'admin', project_ids: [1] };
    const { body } = await consoleOf.yard.post('/cloudyard/v1/tokens', limited);
    const page = await open(path, { token: body.token });
    const button = page.getByRole('button', { name });
    await button.waitFor();
    expect(await button.getAttribute('title')).toBe('The token of this session is limited to projects');
  });

  it.each([
    ['member', ['webhooks/new', 'webhooks/addresses', 'tokens/new', 'clients/new', 'projects/1/delete']],
    [
      'limited',
      ['webhooks/new', 'quotas/threshold', 'quotas/threshold/reset', 'quotas/requests/new', 'clients/1/edit'],
    ],
  ])('is not offered by the dialogs that the palette and links open: %s', async (role, paths) => {
    const { yard } = consoleOf;
    const limited = { name: 'limited', role: 'admin', project_ids: [1] };
    const token =
      role === 'limited' ? (await yard.post('/cloudyard/v1/tokens', limited)).body.token : await newToken(yard, role);
    const page = await open('overview', { token });
    const reasons: Record<string, string> = {};
    for (const path of paths) {
      await goTo(page, path);
      const actions = page.locator('dialog[open] .dialog-actions');
      await actions.locator('button[type=submit][aria-disabled=true]').waitFor();
      reasons[path] = await actions.locator('p').innerText();
    }
    const reason = role === 'member' ? NOT_ADMIN : 'The token of this session is limited to projects';
    expect(reasons).toEqual(Object.fromEntries(paths.map((path) => [path, reason])));
  });

  it('has no export of an audit log that cannot be read', async () => {
    const page = await open('audit', { token: await newToken(consoleOf.yard, 'member') });
    await page.getByRole('heading', { name: 'No access' }).waitFor();
    expect(await page.getByRole('link', { name: /Export/ }).count()).toBe(0);
  });
});

describe('a long name without spaces on a phone', () => {
  it('leaves its status visible in the list, and wraps in dialogs', async () => {
    const { yard } = consoleOf;
    const name = 'a'.repeat(63);
    const task = await yard.ended(
      await yard.insist('POST', '/cloud/v1/volumes/1/1', { name, size: 1, source: 'new-volume' }),
    );
    const volume_id = task.created_resources.volumes[0];
    await yard.ended(await yard.insist('POST', '/cloud/v1/snapshots/1/1', { name: 'of-long-name', volume_id }));
    const page = await open('volumes', { viewport: { width: 360, height: HEIGHT } });
    const row = page.getByRole('row').filter({ hasText: name });
    const status = await row.getByText('available', { exact: true }).boundingBox();
    expect(status!.x + status!.width).toBeLessThan(360);
    await row.getByRole('link', { name }).click();
    for (const action of ['Edit', 'Delete']) {
      await page.locator('.page-head').getByRole('link', { name: action }).click();
      const dialog = page.locator('dialog[open]');
      await dialog.locator('form').waitFor();
      const parts = '[...document.querySelectorAll("dialog[open] :is(header, .dialog-body, .field)")]';
      const overflow = await page.evaluate<number>(
        `Math.max(...${parts}.map((part) => part.scrollWidth - part.clientWidth))`,
      );
      expect({ action, overflow }).toEqual({ action, overflow: 0 });
      await dialog.getByRole('button', { name: 'Close' }).click();
      await dialog.waitFor({ state: 'detached' });
    }
    await goTo(page, 'snapshots');
    await page.getByRole('cell', { name: 'of-long-name' }).waitFor();
    expect(await overflowOf(page)).toBe(0);
  });
});

describe('markup, right-to-left text, emoji and 255 characters', () => {
  it('are shown as text, and do not widen the page', async () => {
    const page = await open('secrets');
    const check = async (text: string) => {
      expect(await page.locator('img[src=x]').count()).toBe(0);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: HEIGHT });
        expect({ text, width, overflow: await overflowOf(page) }).toEqual({ text, width, overflow: 0 });
      }
      await page.setViewportSize({ width: 1280, height: HEIGHT });
    };
    for (const name of [hostileText, longName]) {
      await goTo(page, 'secrets');
      await check('list of secrets');
      await page.getByRole('link', { name }).click();
      await page.getByRole('heading', { name }).waitFor();
      await check(name);
    }
    await goTo(page, 'tasks');
    const task = page.getByRole('row').filter({ has: page.getByRole('link', { name: longName }) });
    const state = await task.getByText('finished', { exact: true }).boundingBox();
    expect(state!.x + state!.width).toBeLessThan(1280);
    await goTo(page, 'file-shares');
    await page.getByRole('link', { name: 'with-tags' }).click();
    await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Tags' }).click();
    await page.getByText(hostileText).first().waitFor();
    await check('tags');
  });
});
