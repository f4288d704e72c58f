import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { checkPage, newToken, signIn, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open, visit } = consoleOf;
/** Longer than a page waits with its announcement. */
const SLOW_MS = 600;

describe('the navigation', () => {
  it('shows the current page, also in a low window', async () => {
    const page = await open('quota-audit', { viewport: { width: 1280, height: 500 } });
    const current = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Quota audit' });
    await expect.poll(async () => (await current.boundingBox())!.y).toBeLessThan(500);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Hosts' }).click();
    await page.getByRole('heading', { name: 'Hosts', level: 1 }).waitFor();
  });
});

describe('the navigation of a phone', () => {
  const openMenu = async () => {
    const page = await open('networks', { viewport: { width: 390, height: 844 } });
    const navigation = page.getByRole('navigation', { name: 'Main' });
    expect(await navigation.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Navigation' }).click();
    await navigation.waitFor();
    return { page, navigation };
  };

  it('is reached with Tab, and closed with Escape', async () => {
    const { page, navigation } = await openMenu();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.closest("nav")?.ariaLabel')).toBe('Main');
    await page.keyboard.press('Escape');
    await navigation.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Navigation' }).and(page.locator(':focus')).waitFor();
  });

  it('is closed by a tap beside it, and by the link of the open page', async () => {
    const { page, navigation } = await openMenu();
    await page.mouse.click(370, 600);
    await navigation.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Navigation' }).click();
    await navigation.getByRole('link', { name: 'Networks', exact: true }).click();
    await navigation.waitFor({ state: 'hidden' });
  });
});

describe('a page that loads slowly', () => {
  it('is announced when it is shown, and has the focus', async () => {
    const { body } = await consoleOf.yard.get('/cloud/v1/networks/1/1');
    const { id, name } = body.results[0];
    const page = await open('networks');
    await page.route(`**/cloud/v1/networks/1/1/${id}`, async (route) => {
      await sleep(SLOW_MS);
      await route.continue();
    });
    await page.getByRole('link', { name, exact: true }).press('Enter');
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    await page.locator('.frame > [role=status]').getByText(`${name} · Cloudyard`).waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });
});

describe('an address', () => {
  it.each([
    ['/p/1/r/1/nonsense', 'Page not found'],
    ['/p/1/r/1/quotas/nonsense', 'Page not found'],
    ['/p/1/r/99/file-shares', 'Region not found'],
    ['/p/99/r/1/file-shares', 'Project not found'],
    ['/p/mine/r/1/file-shares', 'Project not found'],
  ])('%s shows why it has no page, beside the navigation', async (path, title) => {
    const page = await open('overview');
    await page.goto(`${consoleOf.yard.url}/console${path}`);
    await page.locator('main').getByRole('heading', { name: title }).waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Overview' }).waitFor();
    await page
      .locator('main')
      .getByRole('link', { name: /^Go to/ })
      .click();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  });
});

describe('a browser whose clock is wrong', () => {
  it('shows times relative to the clock of the server', async () => {
    const { yard } = consoleOf;
    await yard.ended(await yard.post('/cloud/v1/networks/1/1', { name: 'recent' }));
    const page = await open('overview', { ownContext: true });
    await page.clock.setFixedTime(Date.now() + 7_200_000);
    await page.goto(`${yard.url}/console/p/1/r/1/networks`);
    const row = page.getByRole('row').filter({ hasText: 'recent' });
    await row.getByText(/just now|minutes? ago/).waitFor();
  });
});

describe('a browser in another language', () => {
  it('shows how long ago something was in English, like the rest of the page', async () => {
    const { yard } = consoleOf;
    await yard.ended(await yard.post('/cloud/v1/networks/1/1', { name: 'older' }));
    await yard.sql("update networks set created_at = created_at - interval '2 hours' where name = 'older'");
    const page = await open('networks', { locale: 'de-DE' });
    await page.getByRole('row').filter({ hasText: 'older' }).getByText('2 hours ago').waitFor();
  });
});

describe('a copy button', () => {
  it.each([
    ['without a clipboard, as with plain HTTP', 'undefined', 'true', 'Copied'],
    ['with a clipboard that is forbidden', '{ writeText: () => Promise.reject(new Error()) }', 'true', 'Copied'],
    ['that cannot copy at all', 'undefined', 'false', 'Not copied'],
  ])('%s reports the outcome and keeps the focus', async (_, clipboard, execCommand, outcome) => {
    const page = await open('overview');
    const { body } = await consoleOf.yard.get('/cloud/v1/networks/1/1');
    await page.addInitScript(`Object.defineProperty(navigator, 'clipboard', { value: ${clipboard} });
      document.execCommand = () => ${execCommand};`);
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/networks/${body.results[0].id}`);
    const copy = page.getByRole('button', { name: 'Copy ID' });
    await copy.focus();
    await page.keyboard.press('Enter');
    await copy.getByText(outcome, { exact: true }).waitFor();
    expect(await copy.evaluate('document.activeElement.ariaLabel')).toBe('Copy ID');
  });
});

describe('sign-in', () => {
  it('explains a wrong token, and opens the page of the URL with a right one', async () => {
    const page = await visit('/p/1/r/1/file-shares');
    await page.getByLabel('API token').waitFor();
    await checkPage(page);
    await page.getByLabel('API token').fill('wrong$token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('the token is unknown, expired or revoked').waitFor();
    await page.locator('#token:focus').waitFor();
    await page.getByLabel('API token').fill(consoleOf.yard.env['CLOUDYARD_BOOTSTRAP_TOKEN']!);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'File shares', level: 1 }).waitFor();
  });

  it('leaves no token where scripts can read it', async () => {
    const page = await open('file-shares');
    const readable = await page.evaluate(
      'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])',
    );
    expect(readable).not.toContain('secret-of-the-e2e-tests');
    expect(readable).not.toContain('cloudyard_session');
  });

  it('ends the session by sign-out', async () => {
    const page = await open('file-shares');
    await page.getByRole('button', { name: 'Account and settings' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API token').waitFor();
    expect((await page.request.get(`${consoleOf.yard.url}/cloudyard/v1/session`)).status()).toBe(401);
  });

  it('opens the sign-in also if the session has ended', async () => {
    const page = await open('file-shares', { ownContext: true });
    await page.getByRole('button', { name: 'Account and settings' }).click();
    // The session ends with this request, before the page notices it.
    await page.route('**/cloudyard/v1/session', async (route) => {
      if (route.request().method() === 'DELETE') await route.fetch();
      await route.continue();
    });
    await page.getByRole('button', { name: 'Sign out' }).click();
    // The event stream may end with the session and show the sign-in first, at the address of the page.
    await page.waitForURL('**/console/');
    await page.getByLabel('API token').waitFor();
  });

  it('says that the browser did not keep the cookie', async () => {
    const page = await visit('/p/1/r/1/file-shares');
    await page.getByLabel('API token').waitFor();
    await page.route('**/cloudyard/v1/session', async (route) => {
      if (route.request().method() === 'POST') return route.fulfill({ status: 201, json: {} });
      return route.continue();
    });
    await signIn(page);
    await page.getByText('allow cookies for this site').waitFor();
  });

  it('reports a sign-out that did not reach the server', async () => {
    const page = await open('file-shares');
    await page.getByRole('button', { name: 'Account and settings' }).click();
    await page.route('**/cloudyard/v1/session', (route) => route.abort());
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.locator('.toast').getByText('the server is not reachable').waitFor();
  });

  it('ends in a second tab, which keeps its text and continues after a sign-in in the first', async () => {
    const page = await open('file-shares');
    const second = await page.context().newPage();
    await second.goto(`${consoleOf.yard.url}/console/p/1/r/1/file-shares/new`);
    await second.getByLabel('Name', { exact: true }).fill('in-second-tab');
    const dialog = second.getByRole('dialog', { name: 'Sign in' });
    // The event stream reports the end: within 1 s (docs/console.md), on a machine that is not busy with other tests.
    await second.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await page.getByRole('button', { name: 'Account and settings' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await dialog.waitFor({ timeout: 30_000 });
    await signIn(page);
    await dialog.waitFor({ state: 'detached' });
    expect(await second.getByLabel('Name', { exact: true }).inputValue()).toBe('in-second-tab');
  });

  it('of another client in a second tab leaves nothing of the last one on the first', async () => {
    const { yard } = consoleOf;
    const client = (await yard.insist('POST', '/cloudyard/v1/clients', { name: 'other' })).body;
    const other = { name: 'other', role: 'admin', client_id: client.id };
    const { token } = (await yard.insist('POST', '/cloudyard/v1/tokens', other)).body;
    await yard.insist('POST', '/cloud/v1/projects', { name: 'of the first' });
    const page = await open('networks');
    await page.getByRole('table', { name: 'Networks' }).waitFor();
    const second = await page.context().newPage();
    await second.goto(`${yard.url}/console/p/1/r/1/overview`);
    await second.getByRole('button', { name: 'Account and settings' }).click();
    await second.getByRole('button', { name: 'Sign out' }).click();
    await second.getByLabel('API token').fill(token);
    // Also while its reads fail.
    await page.route('**/cloud/v1/projects*', (route) => route.fulfill({ status: 503 }));
    await second.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('table', { name: 'Networks' }).waitFor({ state: 'detached' });
    await page.unroute('**/cloud/v1/projects*');
    await page.getByRole('heading', { name: 'Project not found' }).waitFor();
    const projects = page.getByRole('combobox', { name: 'Project' }).getByRole('option');
    expect(await projects.allInnerTexts()).not.toContain('of the first');
  });

  it('keeps the page and what was typed when the session ends', async () => {
    const token = await newToken(consoleOf.yard, 'admin');
    const page = await open('file-shares/new', { token });
    await page.getByLabel('Name', { exact: true }).fill('typed');
    const { token_id } = await (await page.request.get(`${consoleOf.yard.url}/cloudyard/v1/session`)).json();
    // Nothing is clicked: the page notices by itself.
    await consoleOf.yard.run(['token', 'revoke', String(token_id)]);
    const dialog = page.getByRole('dialog', { name: 'Sign in' });
    await dialog.waitFor();
    await page.getByLabel('API token').fill(consoleOf.yard.env['CLOUDYARD_BOOTSTRAP_TOKEN']!);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('typed');
  });

  it('says that JavaScript is needed', async () => {
    const page = await visit('/', { javaScriptEnabled: false });
    await page.locator('noscript p').waitFor();
    expect(await page.locator('noscript p').innerText()).toContain('needs JavaScript');
  });
});

describe('the browser of a test', () => {
  const store = `document.cookie = 'of=a-test'; localStorage.setItem('of', 'a-test'); sessionStorage.setItem('of', 'a-test');
    new Promise((done) => { indexedDB.open('of-a-test').onsuccess = () => caches.open('of-a-test').then(() => done()); })`;
  const read = `Promise.all([document.cookie, Object.keys(localStorage), Object.keys(sessionStorage), caches.keys(),
    indexedDB.databases()])`;

  it.each(['a test', 'the next test'])('has nothing of another test (%s)', async () => {
    const page = await visit('/');
    await page.getByLabel('API token').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    expect(await page.evaluate(read)).toEqual(['', [], [], [], []]);
    await page.evaluate(store);
    expect(await page.evaluate(read)).toEqual(['of=a-test', ['of'], ['of'], ['of-a-test'], [expect.anything()]]);
  });
});

describe('the frame', () => {
  it('closes the list of running tasks when one of its links is followed', async () => {
    const page = await open('file-shares');
    const tasks = page.locator('#running-tasks');
    await page.getByRole('button', { name: /running tasks?/ }).click();
    await tasks.getByRole('link', { name: 'All tasks' }).click();
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    await tasks.waitFor({ state: 'hidden' });
    await page.locator('main:focus').waitFor();
  });

  it('disables what a reader may not do, with the reason', async () => {
    const page = await open('file-shares', { token: await newToken(consoleOf.yard, 'reader') });
    const create = page.getByRole('button', { name: /Create file share/ });
    expect(await create.getAttribute('aria-disabled')).toBe('true');
    expect(await create.getAttribute('title')).toBe('The token of this session is read-only');
  });

  it('moves the focus to the content of a page that the palette opens', async () => {
    const page = await open('file-shares');
    await page.getByRole('button', { name: 'Account and settings' }).focus();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('go to volumes');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Volumes', level: 1 }).waitFor();
    await page.locator('main:focus').waitFor();
  });

  it('moves the focus to the content of a page that the navigation of a narrow window opens', async () => {
    const page = await open('file-shares', { viewport: { width: 360, height: 740 } });
    await page.getByRole('button', { name: 'Navigation' }).press('Enter');
    await page
      .getByRole('navigation', { name: 'Main' })
      .getByRole('link', { name: 'Volumes', exact: true })
      .press('Enter');
    await page.getByRole('heading', { name: 'Volumes', level: 1 }).waitFor();
    await page.locator('main:focus').waitFor();
  });

  it('creates a file share with the keyboard alone', async () => {
    const page = await open('file-shares');
    await page.getByRole('link', { name: 'Create file share' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('create file');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Create file share' }).locator('input:focus').waitFor();
    await page.keyboard.type('by-keyboard');
    await page.getByText('Loading the networks').waitFor({ state: 'hidden' });
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'by-keyboard' }).waitFor();
  });

  it('asks before it discards typed text', async () => {
    const page = await open('file-shares/new');
    await page.getByLabel('Name', { exact: true }).fill('unsaved');
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void (questions.length === 1 ? dialog.dismiss() : dialog.accept());
    });
    await page.keyboard.press('Escape');
    await expect.poll(() => questions.length).toBe(1);
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('unsaved');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(questions).toEqual(['Discard what you typed?', 'Discard what you typed?']);
  });

  it('links the API reference of the server', async () => {
    const page = await open('file-shares');
    await page.getByRole('button', { name: 'Account and settings' }).click();
    const href = await page.getByRole('link', { name: 'API reference' }).getAttribute('href');
    expect((await page.request.get(`${consoleOf.yard.url}${href}`)).status()).toBe(200);
  });

  it('shows the focus, the choice and the gauges where the system chooses the colors', async () => {
    const page = await open('quotas', { forcedColors: 'active' });
    const styleOf = (element: string, property: string) =>
      page.evaluate<string>(`getComputedStyle(${element}).${property}`);
    await page.getByRole('meter').first().waitFor();
    const bar = 'document.querySelector(".gauge > span")';
    expect(await styleOf(bar, 'backgroundColor')).not.toBe(await styleOf(`${bar}.parentElement`, 'backgroundColor'));
    await page.getByRole('button', { name: 'Account and settings' }).focus();
    await page.keyboard.press('Tab');
    const hasOutline = async (element: string) => {
      expect(await styleOf(element, 'outlineStyle')).toBe('solid');
      expect(await styleOf(element, 'outlineColor')).not.toContain('rgba(0, 0, 0, 0)');
    };
    await hasOutline('document.activeElement');
    await page.keyboard.press('Control+k');
    await page.locator('[role=option][aria-selected=true]').waitFor();
    await hasOutline('document.querySelector("[role=option][aria-selected=true]")');
  });

  it('shows the current page and tab where the system chooses the colors', async () => {
    const page = await open('clients/1', { forcedColors: 'active' });
    await page.locator('.tabs a').first().waitFor();
    const stylesOf = (selector: string, property: string) =>
      page.evaluate<string[]>(
        `[...document.querySelectorAll('${selector}')].map((each) => getComputedStyle(each).${property})`,
      );
    expect(await stylesOf('.tabs a', 'borderBottomStyle')).toEqual(['solid', 'none', 'none']);
    expect(await stylesOf('.side [aria-current=page]', 'textDecorationLine')).toEqual(['underline']);
  });

  it('keeps the chosen theme over a reload', async () => {
    const page = await open('file-shares', { colorScheme: 'light' });
    await page.getByRole('button', { name: 'Account and settings' }).click();
    await page.getByLabel('Theme').selectOption('dark');
    await page.reload();
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
  });
});
