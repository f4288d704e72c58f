import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const registries = '/cloud/v1/registries/1/1';

const newRegistry = async (name: string): Promise<any> => (await consoleOf.yard.post(registries, { name })).body;
const registryNamed = async (name: string): Promise<any> =>
  (await consoleOf.yard.get(registries)).body.results.find((registry: { name: string }) => registry.name === name);
const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

describe('the pages of registries', () => {
  it('creates, resizes and deletes a registry', async () => {
    const page = await open('registries');
    await page.getByRole('link', { name: 'Create registry' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill('images');
    await page.getByLabel('Storage limit (GiB)').fill('2');
    await submit(page, 'Create registry');
    await page.getByRole('heading', { name: 'images' }).waitFor();
    await page.getByText('0 B of 2 GiB').waitFor();
    await page.getByRole('link', { name: 'Resize' }).click();
    await page.getByLabel('Storage limit (GiB)').fill('3');
    await submit(page, 'Resize');
    await page.getByText('0 B of 3 GiB').waitFor();
    const { id, url } = await registryNamed('images');
    expect(await page.locator('pre').allInnerTexts()).toContain(
      `docker tag my-image:1.0 ${url}/my-image:1.0\ndocker push ${url}/my-image:1.0`,
    );
    expect(await registryNamed('images')).toMatchObject({ id, storage_limit: 3 });
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type images to confirm').fill('images');
    await submit(page, 'Delete registry');
    await page.getByText('Deleted registry images').waitFor();
    expect(await registryNamed('images')).toBeUndefined();
  });

  it('shows what the API would refuse at its field, and keeps the text', async () => {
    const page = await open('registries/new');
    await page.getByLabel('Name', { exact: true }).fill('Not Valid');
    await submit(page, 'Create registry');
    await page
      .getByRole('alert')
      .getByText(/2 to 24 lowercase letters/)
      .waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Not Valid');
    await checkPage(page);
  });

  it('creates a user, shows its secret once, replaces the secret, edits and deletes the user', async () => {
    const { id } = await newRegistry('with-users');
    const page = await open(`registries/${id}?tab=users`);
    await page.getByRole('link', { name: 'Create user' }).click();
    await page.getByLabel('Name', { exact: true }).fill('robot');
    await submit(page, 'Create user');
    await page.getByRole('dialog', { name: 'Secret of user robot' }).waitFor();
    const secret = await page.getByRole('dialog').locator('pre').first().innerText();
    expect(secret.length).toBeGreaterThan(10);
    await checkPage(page);
    await submit(page, 'Done');
    await page.getByRole('cell', { name: 'robot', exact: true }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await page.getByRole('link', { name: 'Replace secret robot' }).click();
    await submit(page, 'Replace secret');
    await page.getByRole('dialog', { name: 'Secret of user robot' }).waitFor();
    expect(await page.getByRole('dialog').locator('pre').first().innerText()).not.toBe(secret);
    await submit(page, 'Done');
    await page.getByRole('link', { name: 'Edit robot' }).click();
    await page.getByLabel('The user can only pull').check();
    await submit(page, 'Save');
    await page.getByRole('cell', { name: 'pull', exact: true }).waitFor();
    const users = await consoleOf.yard.get(`${registries}/${id}/users`);
    expect(users.body.results).toMatchObject([{ name: 'robot', read_only: true }]);
    await page.getByRole('link', { name: 'Delete robot' }).click();
    await page.getByLabel('Type robot to confirm').fill('robot');
    await submit(page, 'Delete user');
    await page.getByText('No users').waitFor();
    expect((await consoleOf.yard.get(`${registries}/${id}/users`)).body.results).toEqual([]);
  });

  it('changes the expiry of a user without a change that another client has made meanwhile', async () => {
    const { yard } = consoleOf;
    const { id } = await newRegistry('shared');
    const users = `${registries}/${id}/users`;
    const user = await yard.insist('POST', users, { name: 'robot', duration: 90, read_only: false });
    const page = await open(`registries/${id}/users/${user.body.id}/edit?tab=users`);
    await page.getByLabel('Expires after (days)').fill('30');
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await yard.insist('PATCH', `${users}/${user.body.id}`, { duration: 90, read_only: true });
    await page.locator('td').getByText('pull', { exact: true }).waitFor();
    await submit(page, 'Save');
    await page.getByText('Changed user robot').waitFor();
    expect((await yard.get(users)).body.results).toMatchObject([{ duration: 30, read_only: true }]);
  });

  it('shows many repositories, artifacts and users in pages, with a filter', async () => {
    const { yard } = consoleOf;
    const { id } = await newRegistry('busy');
    const now = new Date();
    const [repository] = await yard.sql<{ id: number }>(
      `insert into registry_repositories (registry_id, name, created_at, updated_at, seen_at)
       select $1, 'team/app-' || n, $2, $2, $2 from generate_series(1, 60) n returning id`,
      [id, now],
    );
    await yard.sql(
      `insert into registry_artifacts (repository_id, digest, size, pushed_at, seen_at)
       select $1, 'sha256:' || lpad(to_hex(n), 64, '0'), 10, $2, $2 from generate_series(1, 60) n`,
      [repository!.id, now],
    );
    const page = await open(`registries/${id}?tab=repositories`);
    await page.getByText('1–50 of 60').waitFor();
    await page.getByLabel('Filter', { exact: true }).fill('app-1');
    await page.getByRole('link', { name: 'team/app-1', exact: true }).click();
    await page.getByRole('table', { name: 'Artifacts of team/app-1' }).waitFor();
    await page.getByText('1–50 of 60').waitFor();
    await checkPage(page);
    await yard.sql(
      `insert into registry_users (registry_id, name, secret_mac, duration, read_only, created_at)
       select $1, 'robot-' || n, '', -1, true, $2 from generate_series(1, 60) n`,
      [id, now],
    );
    await page.goto(`${yard.url}/console/p/1/r/1/registries/${id}?tab=users`);
    await page.getByText('1–50 of 60').waitFor();
    await page.getByLabel('Filter', { exact: true }).fill('robot-6');
    await page.getByText('2 of 60 rows').waitFor();
  });

  it('has no accessibility violations on the list and on every tab', async () => {
    const { id } = await newRegistry('accessible');
    const page = await open('registries');
    await page.getByRole('link', { name: 'accessible' }).waitFor();
    await checkPage(page);
    for (const tab of ['', '?tab=repositories', '?tab=users', '?tab=audit']) {
      await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/registries/${id}${tab}`);
      await page.getByRole('heading', { name: 'accessible' }).waitFor();
      await checkPage(page);
    }
  });
});
