/** What dialogs do with the keyboard, the title of the page and the history of the browser. */
import type { Page, Route } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { loaded, signIn, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const networks = '/cloud/v1/networks/1/1';

const nameField = (page: Page) => page.getByLabel('Name', { exact: true });

async function endSession(page: Page): Promise<void> {
  const url = `${consoleOf.yard.url}/cloudyard/v1/session`;
  const { csrf_token } = await (await page.request.get(url)).json();
  await page.request.delete(url, { headers: { 'X-CSRF-Token': csrf_token } });
  await page.getByRole('dialog', { name: 'Sign in' }).waitFor();
}

describe('Escape', () => {
  it('twice leaves a form open whose text is kept, with the focus where it was', async () => {
    const page = await open('networks/new');
    await nameField(page).fill('kept');
    let questions = 0;
    page.on('dialog', (dialog) => {
      questions += 1;
      void dialog.dismiss();
    });
    for (const count of [1, 2, 3]) {
      await page.keyboard.press('Escape');
      await expect.poll(() => questions).toBe(count);
      await page.locator('dialog[open]').waitFor();
    }
    expect(await nameField(page).inputValue()).toBe('kept');
    await expect.poll(() => page.evaluate('document.activeElement.value')).toBe('kept');
  });

  it('several times does not close the sign-in of a session that ended', async () => {
    const page = await open('networks/new');
    await nameField(page).fill('kept-as-well');
    await endSession(page);
    for (let count = 0; count < 4; count += 1) await page.keyboard.press('Escape');
    await signIn(page);
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor({ state: 'detached' });
    expect(await nameField(page).inputValue()).toBe('kept-as-well');
    expect(await page.locator('dialog[open]').count()).toBe(1);
  });
});

describe('the sign-in of a session that ended', () => {
  it('is not covered by the palette', async () => {
    const page = await open('networks');
    await endSession(page);
    await page.keyboard.press('Control+k');
    await signIn(page);
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor({ state: 'detached' });
    expect(await page.locator('dialog[open]').count()).toBe(0);
  });

  it('is not covered by a form that opens later', async () => {
    const page = await open('networks');
    await page.getByRole('link', { name: 'Create network' }).click();
    await nameField(page).waitFor();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await endSession(page);
    await page.getByLabel('API token').fill('half a tok');
    await page.goForward();
    await nameField(page).waitFor();
    // The focus is still in the sign-in.
    await page.keyboard.type('en');
    expect(await page.getByLabel('API token').inputValue()).toBe('half a token');
    await signIn(page);
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor({ state: 'detached' });
    await nameField(page).fill('after the sign-in');
    await page.getByRole('dialog').getByRole('button', { name: 'Create network' }).click();
    await page.getByText('Created network after the sign-in').waitFor();
  });
});

describe('the page below a dialog', () => {
  it('stays where it was scrolled to', async () => {
    const limits = { global_limits: { project_count_limit: 50 } };
    const request = { description: 'more', requested_limits: limits };
    await consoleOf.yard.insist('POST', '/cloud/v2/limits_request', request);
    const page = await open('quotas', { viewport: { width: 1280, height: 300 } });
    const decline = page.getByRole('link', { name: /^Decline request/ });
    await decline.waitFor();
    // Tables above it load, and move it.
    let height = 0;
    const isStill = async () => {
      const before = height;
      height = await page.evaluate<number>('document.documentElement.scrollHeight');
      return height === before;
    };
    await expect.poll(isStill, { interval: 500 }).toBe(true);
    await decline.scrollIntoViewIfNeeded();
    const scrolled = () => page.evaluate<number>('scrollY');
    const before = await scrolled();
    expect(before).toBeGreaterThan(0);
    await decline.click();
    await page.locator('dialog[open] form').waitFor();
    await expect.poll(() => page.title()).toContain('Decline');
    expect(await scrolled()).toBe(before);
    await page.keyboard.press('Escape');
    await page.locator('dialog[open]').waitFor({ state: 'detached' });
    expect(await scrolled()).toBe(before);
  });
});

describe('the title', () => {
  it('is that of the dialog again after a sign-in', async () => {
    const page = await open('networks/new');
    await expect.poll(() => page.title()).toBe('Create network · Cloudyard');
    await endSession(page);
    await expect.poll(() => page.title()).toBe('Sign in · Cloudyard');
    await signIn(page);
    await expect.poll(() => page.title()).toBe('Create network · Cloudyard');
  });

  it('is that of a resource that was renamed while a dialog was open', async () => {
    const task = await consoleOf.yard.ended(await consoleOf.yard.insist('POST', networks, { name: 'old-name' }));
    const id = task.created_resources.networks[0];
    const page = await open(`networks/${id}`);
    await page.getByRole('link', { name: 'Edit', exact: true }).click();
    await expect.poll(() => page.title()).toBe('Edit old-name · Cloudyard');
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await consoleOf.yard.insist('PATCH', `${networks}/${id}`, { name: 'new-name' });
    await page.locator('h1').getByText('new-name').waitFor();
    expect(await page.title()).toMatch(/^Edit /);
    await page.keyboard.press('Escape');
    await expect.poll(() => page.title()).toBe('new-name · Cloudyard');
  });
});

describe('the back button', () => {
  const openForm = async () => {
    const page = await open('overview');
    await page.getByRole('link', { name: 'Networks', exact: true }).click();
    await loaded(page);
    await page.getByRole('link', { name: 'Create network' }).click();
    await nameField(page).waitFor();
    return page;
  };
  const pathOf = (page: Page) => new URL(page.url()).pathname.split('/').slice(6).join('/');

  it('does not open a form again that was closed', async () => {
    const page = await openForm();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(pathOf(page)).toBe('networks');
    await page.goBack();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    await page.goForward();
    await page.getByRole('heading', { name: 'Networks', level: 1 }).waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  it('does not open a form again that was sent', async () => {
    const page = await openForm();
    await nameField(page).fill('sent-once');
    await page.getByRole('dialog').getByRole('button', { name: 'Create network' }).click();
    await page.getByRole('link', { name: 'sent-once' }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.goBack();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  });

  it('closes a form, and asks before it discards text', async () => {
    const page = await openForm();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(pathOf(page)).toBe('networks');
    await page.goForward();
    await nameField(page).fill('unsent');
    const question = page.waitForEvent('dialog').then((dialog) => dialog.dismiss());
    await page.goBack().catch(() => null);
    await question;
    await expect.poll(() => pathOf(page)).toBe('networks/new');
    expect(await nameField(page).inputValue()).toBe('unsent');
  });

  it('leaves the page of a link that opened the form directly', async () => {
    // A page of the kept context has no history entry before its first URL.
    const page = await open('networks/new', { ownContext: true });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(pathOf(page)).toBe('networks');
    await page.goBack();
    expect(page.url()).toBe('about:blank');
  });
});

describe('a form that is closed while its request is sent', () => {
  /** Sends the form, closes it and opens another page. Returns the function that lets the server respond. */
  const closeWhileSending = async (name: string, respond: (route: Route) => Promise<void>) => {
    const page = await open('networks/new');
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void dialog.dismiss();
    });
    let end = () => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    await page.route(`**${networks}`, (route) => ended.then(() => respond(route)), { times: 1 });
    await nameField(page).fill(name);
    await page.getByRole('dialog').getByRole('button', { name: 'Create network' }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Subnets', exact: true }).click();
    await page.getByRole('link', { name: 'Create subnet' }).click();
    await nameField(page).fill('typed meanwhile');
    return { page, end, questions };
  };
  const expectKept = async (page: Page) => {
    expect(await nameField(page).inputValue()).toBe('typed meanwhile');
    expect(new URL(page.url()).pathname).toMatch(/subnets\/new$/);
  };

  it('leaves the page that was opened since', async () => {
    const { page, end, questions } = await closeWhileSending('sent-and-left', (route) => route.continue());
    end();
    await page.getByText('Created network sent-and-left').waitFor();
    await expectKept(page);
    expect(questions).toEqual([]);
  });

  it.each([
    [409, 'the name is in use'],
    [401, 'the session has ended'],
  ])('reports the failure of its request with %i', async (status, message) => {
    const refusal = { status, json: { message } };
    const { page, end } = await closeWhileSending('refused-and-left', (route) => route.fulfill(refusal));
    end();
    await page.locator('.toast.bad').getByText(message).waitFor();
    await expectKept(page);
  });
});

describe('the palette over a form', () => {
  it('does not send the form with the key that chooses a page', async () => {
    const page = await open('networks/new');
    let questions = 0;
    page.on('dialog', (dialog) => {
      questions += 1;
      void dialog.dismiss();
    });
    await nameField(page).fill('not-sent');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('go to volumes');
    await page.keyboard.press('Enter');
    await expect.poll(() => questions).toBe(1);
    // A form that is sent shows it at once.
    expect(await page.locator('dialog[open] button[type=submit]').getAttribute('aria-disabled')).toBe('false');
    await loaded(page);
    expect(await nameField(page).inputValue()).toBe('not-sent');
    const { results } = (await consoleOf.yard.get(networks)).body;
    expect(results.map(({ name }: { name: string }) => name)).not.toContain('not-sent');
  });
});

describe('the confirmation of a deletion', () => {
  it.each([
    [' two  spaces', 'two spaces'],
    ['cafe\u0301\u200B', 'caf\u00E9'],
  ])('accepts a name as the browser shows it: %s', async (name, typed) => {
    const payload = { payload: 'c2VjcmV0', payload_content_encoding: 'base64', payload_content_type: 'text/plain' };
    const secret = { name, secret_type: 'opaque', ...payload };
    const task = await consoleOf.yard.ended(await consoleOf.yard.insist('POST', '/cloud/v1/secrets/1/1', secret));
    const page = await open(`secrets/${task.created_resources.secrets[0]}/delete`);
    await page.getByLabel(/^Type .+ to confirm$/).fill(typed);
    await page.getByRole('button', { name: 'Delete secret' }).click();
    await page.getByText('Deleted secret').waitFor();
  });
});

describe('the listeners of a new load balancer', () => {
  it('get names that no other listener and no other pool of the form has', async () => {
    const page = await open('load-balancers/new');
    const add = page.getByRole('button', { name: 'Add listener' });
    await add.click();
    await page.getByRole('button', { name: 'Remove listener 1' }).click();
    await add.click();
    const names = async (label: string) =>
      Promise.all((await page.getByLabel(label).all()).map((input) => input.inputValue()));
    await expect.poll(() => names('Listener name')).toEqual(['listener-2', 'listener-1']);
    expect(await names('Pool name')).toEqual(['pool-2', 'pool-1']);
  });
});

describe('a part of a form that is added or removed', () => {
  it.each([
    ['lifecycle-policies/new', 'Add schedule', 'Remove schedule'],
    ['load-balancers/new', 'Add listener', 'Remove listener'],
  ])('of %s keeps the focus in the form', async (path, add, remove) => {
    const page = await open(path);
    const button = (name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true });
    const hasFocus = (name: string) => button(name).and(page.locator(':focus')).waitFor();
    await button(add).press('Enter');
    await page.locator('dialog fieldset:nth-of-type(2) :is(input, select):focus').waitFor();
    await button(`${remove} 2`).press('Enter');
    await hasFocus(`${remove} 1`);
    await page.keyboard.press('Enter');
    await hasFocus(add);
  });
});

describe('a toast', () => {
  it('is above an open dialog and can be dismissed', async () => {
    const page = await open('networks/new');
    let release = () => {};
    const isReleased = new Promise<void>((done) => (release = done));
    await page.route(/\/v1\/tasks\/[\w-]+$/, async (route) => {
      await isReleased;
      await route.continue();
    });
    await nameField(page).fill('created-below');
    await page.getByRole('button', { name: 'Create network' }).click();
    await page.getByRole('link', { name: 'Create network' }).click();
    await nameField(page).fill('kept');
    release();
    const toast = page.locator('.toast.ok').filter({ hasText: 'Created network created-below' });
    await toast.getByRole('button', { name: 'Dismiss' }).press('Enter');
    await toast.waitFor({ state: 'detached' });
    expect(await nameField(page).inputValue()).toBe('kept');
    await page.locator('dialog input:focus').waitFor();
  });

  it('of a success stays while the pointer or the focus is on it', async () => {
    const page = await open('networks/new');
    await page.clock.install();
    await nameField(page).fill('created-slowly');
    await page.getByRole('button', { name: 'Create network' }).click();
    const toast = page.locator('.toast.ok').filter({ hasText: 'Created network created-slowly' });
    await toast.hover();
    await page.clock.fastForward(8000);
    await toast.getByRole('button', { name: 'Dismiss' }).focus();
    await page.mouse.move(0, 0);
    await page.clock.fastForward(8000);
    expect(await toast.isVisible()).toBe(true);
    await page.getByRole('link', { name: 'Create network' }).focus();
    await page.clock.fastForward(8000);
    await toast.waitFor({ state: 'detached' });
  });
});

describe('the same by code', () => {
  it('on a phone has the button that copies it above the text', async () => {
    const page = await open('networks/new', { viewport: { width: 360, height: 740 } });
    await page.getByText('The same by code').click();
    const code = page.getByRole('tabpanel', { name: 'curl' });
    const text = await code.locator('pre').boundingBox();
    const button = await code.getByRole('button', { name: 'Copy text' }).boundingBox();
    expect(button!.y + button!.height).toBeLessThanOrEqual(text!.y);
  });
});
