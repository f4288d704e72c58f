/** API keys and pull secrets of the container platform. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const keys = '/cloud/v1/caas/keys/1/1';
const secrets = '/cloud/v1/caas/secrets/1/1';
const submit = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click();

describe('the pages of API keys', () => {
  it('creates a key, shows its secret once, edits, disables, enables and deletes it', async () => {
    // Nine hours before UTC.
    const page = await open('api-keys', { timezoneId: 'Asia/Tokyo' });
    await page.getByRole('link', { name: 'Create API key' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill('first-key');
    await page.getByLabel('Namespace 1').fill('default');
    await page.getByLabel('Container 1').fill('web');
    await page.getByLabel('Expires').fill('2040-01-02T12:04');
    await submit(page, 'Create API key');
    await page.getByRole('dialog', { name: 'Secret of API key first-key' }).waitFor();
    const secret = await page.getByRole('dialog').locator('pre').first().innerText();
    await checkPage(page);
    await submit(page, 'Done');
    await page.getByRole('cell', { name: 'default/web' }).waitFor();
    expect(await page.content()).not.toContain(secret);
    const created = await consoleOf.yard.get(`${keys}/first-key`);
    expect(created.body).toMatchObject({
      containers: [{ name: 'web', namespace: 'default' }],
      expire: '2040-01-02T03:04:00Z',
    });
    await page.getByRole('link', { name: 'first-key' }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByRole('group', { name: 'Containers' }).getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('Namespace 2').fill('default');
    await page.getByLabel('Container 2').fill('api');
    await submit(page, 'Save');
    await page.getByRole('cell', { name: 'api', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Verify' }).click();
    await page.getByLabel('Secret', { exact: true }).fill(secret);
    await submit(page, 'Verify');
    await page.getByText('The key opens the container.').waitFor();
    await page.getByLabel('Container', { exact: true }).fill('other');
    await page.getByText('The key opens the container.').waitFor({ state: 'detached' });
    await submit(page, 'Verify');
    await page.getByText(/^403: /).waitFor();
    await checkPage(page);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Disable' }).click();
    await submit(page, 'Disable');
    await page.getByText('disabled', { exact: true }).waitFor();
    expect((await consoleOf.yard.get(`${keys}/first-key`)).body).toMatchObject({ is_disabled: true });
    await page.getByRole('link', { name: 'Enable' }).click();
    await submit(page, 'Enable');
    await page.getByRole('link', { name: 'Disable' }).waitFor();
    await page.getByRole('link', { name: 'Audit log' }).last().click();
    const entries = page.getByRole('table', { name: 'Audit log' });
    await entries.getByRole('cell', { name: 'createApiKey' }).waitFor();
    expect(await entries.getByRole('cell', { name: 'updateApiKey' }).count()).toBe(3);
    await checkPage(page);
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type first-key to confirm').fill('first-key');
    await submit(page, 'Delete API key');
    await page.getByText('Deleted API key first-key').waitFor();
    expect((await consoleOf.yard.get(`${keys}/first-key`)).status).toBe(404);
  });

  it('counts a copy of the command with the secret as a copy of the secret', async () => {
    const page = await open('api-keys');
    await page.getByRole('link', { name: 'Create API key' }).first().click();
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void dialog.dismiss();
    });
    await page.getByLabel('Name', { exact: true }).fill('copied-key');
    await page.getByLabel('Namespace 1').fill('default');
    await page.getByLabel('Container 1').fill('web');
    await submit(page, 'Create API key');
    await page.getByRole('dialog', { name: 'Secret of API key copied-key' }).waitFor();
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await expect.poll(() => questions).toEqual(['Close without a copy of the secret?']);
    const copy = page.getByRole('button', { name: 'Copy curl command' });
    await copy.click();
    await copy.getByText('Copied', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(questions).toHaveLength(1);
  });

  it('shows an error at its field, keeps the text, and has no accessibility violations', async () => {
    await consoleOf.yard.post(keys, { name: 'taken', containers: [] });
    const page = await open('api-keys');
    await page.getByRole('link', { name: 'taken' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Create API key' }).click();
    await page.getByLabel('Name', { exact: true }).fill('taken');
    await page.getByLabel('Namespace 1').fill('default');
    await page.getByLabel('Container 1').fill('X');
    await submit(page, 'Create API key');
    await page
      .getByRole('alert')
      .getByText(/row 1, name: /)
      .first()
      .waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('taken');
    await page.getByLabel('Container 1').fill('web');
    await submit(page, 'Create API key');
    await page.getByRole('alert').getByText(/taken/).first().waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('taken');
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/api-keys/taken`);
    await page.getByRole('heading', { name: 'taken' }).waitFor();
    await checkPage(page);
  });
});

describe('the pages of pull secrets', () => {
  it('creates, verifies, edits and deletes a pull secret', async () => {
    const page = await open('pull-secrets');
    await page.getByRole('link', { name: 'Create pull secret' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill('hub');
    await page.getByLabel('Registry').fill('not a registry');
    await page.getByLabel('Login').fill('robot');
    await page.getByLabel('Password').fill('typed-password');
    await checkPage(page);
    await submit(page, 'Create pull secret');
    await page.getByRole('heading', { name: 'hub' }).waitFor();
    expect(await page.content()).not.toContain('typed-password');
    await page.getByRole('link', { name: 'Verify' }).click();
    await submit(page, 'Verify');
    await page.getByText('unusable').waitFor();
    await checkPage(page);
    await submit(page, 'Cancel');
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Login').fill('other');
    await submit(page, 'Save');
    await page.getByText('Changed pull secret hub').waitFor();
    expect((await consoleOf.yard.get(`${secrets}/hub`)).body).toMatchObject({
      login: 'other',
      registry: 'not a registry',
    });
    await page.getByRole('link', { name: 'Audit log' }).last().click();
    const entries = page.getByRole('table', { name: 'Audit log' });
    await entries.getByRole('cell', { name: 'createPullSecret' }).waitFor();
    await entries.getByRole('cell', { name: /login/ }).waitFor();
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type hub to confirm').fill('hub');
    await submit(page, 'Delete pull secret');
    await page.getByText('Deleted pull secret hub').waitFor();
    expect((await consoleOf.yard.get(`${secrets}/hub`)).status).toBe(404);
  });
});

describe('a key or pull secret with the name new', () => {
  it.each([
    ['api-keys', keys, { containers: [] }],
    ['pull-secrets', secrets, { registry: 'r.example', login: 'me', password: 'secret' }],
  ])('has a page: %s', async (path, url, fields) => {
    await consoleOf.yard.insist('POST', url, { name: 'new', ...fields });
    const page = await open(path);
    await page.getByRole('link', { name: 'new', exact: true }).click();
    await page.getByRole('heading', { name: 'new', level: 1 }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'new', level: 1 }).waitFor();
  });
});
