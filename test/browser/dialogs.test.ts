/** What dialogs do with the keyboard and the title of the page. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { signIn, useConsole } from './console.ts';

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
