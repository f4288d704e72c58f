import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

const listed = async (name: string) => {
  const { body } = await consoleOf.yard.get('/cloudyard/v1/tokens');
  return body.results.find((token: { name: string }) => token.name === name);
};

describe('the page of tokens', () => {
  it('has the choice of the client beside the button that creates a token', async () => {
    await consoleOf.yard.insist('POST', '/cloudyard/v1/clients', { name: 'c'.repeat(255) });
    const page = await open('tokens');
    const choice = (await page.getByRole('combobox', { name: 'Client' }).boundingBox())!;
    const create = (await page.getByRole('link', { name: 'Create token' }).boundingBox())!;
    expect(Math.abs(choice.y - create.y)).toBeLessThan(4);
    expect(choice.x + choice.width).toBeLessThan(create.x);
  });

  it('creates a token with role, project and expiry, and shows the secret once', async () => {
    const page = await open('tokens');
    await page.getByRole('link', { name: 'Create token' }).click();
    await page.getByLabel('Name', { exact: true }).fill('<b>ci</b>');
    await page.getByRole('dialog').getByLabel('Role').selectOption('reader');
    await page.getByRole('group', { name: 'Projects' }).getByRole('checkbox').first().check();
    await page.getByLabel('Expires').fill('2020-01-01T00:00');
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    await page
      .getByRole('alert')
      .getByText(/future|past/)
      .first()
      .waitFor();
    expect(await page.getByLabel('Expires').getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Expires').fill('2050-01-01T00:00');
    await checkPage(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    const secret = await page.getByRole('dialog').locator('pre').innerText();
    const created = await listed('<b>ci</b>');
    expect(created).toMatchObject({
      role: 'reader',
      project_ids: [1],
      expires_at: expect.stringMatching(/^20(49|50)/),
    });
    expect(secret.startsWith(`${created.key_id}$`)).toBe(true);
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('cell', { name: `<b>ci</b> ${created.key_id}` }).waitFor();
    expect(await page.content()).not.toContain(secret);
    await checkPage(page);
  });

  it('offers a chosen project that was deleted elsewhere, so that it can be taken out', async () => {
    const { yard } = consoleOf;
    const project = (await yard.insist('POST', '/cloud/v1/projects', { name: 'short-lived' })).body;
    const page = await open('tokens/new');
    await page.getByLabel('Name', { exact: true }).fill('limited');
    await page.getByLabel('short-lived').check();
    await yard.insist('DELETE', `/cloud/v1/projects/${project.id}`);
    const lost = page.getByRole('group', { name: 'Projects' }).getByLabel(String(project.id), { exact: true });
    await lost.waitFor();
    const create = page.getByRole('dialog').getByRole('button', { name: 'Create token' });
    await create.click();
    await lost.and(page.locator('[aria-invalid=true]:focus')).waitFor();
    await lost.click();
    await create.click();
    await page.getByRole('dialog', { name: 'Token limited' }).waitFor();
    expect(await listed('limited')).toMatchObject({ project_ids: null });
    await page.getByRole('dialog').locator('pre').first().dispatchEvent('copy');
  });

  it('shows the choice of projects at the start of its line, also after a page of load balancers', async () => {
    const page = await open('load-balancers/new');
    await page.getByLabel('Listener name').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Tokens', exact: true }).click();
    await page.getByRole('link', { name: 'Create token' }).click();
    const projects = page.getByRole('group', { name: 'Projects' });
    const [group, box] = [await projects.boundingBox(), await projects.getByRole('checkbox').first().boundingBox()];
    expect(box!.x).toBe(group!.x);
  });

  it('asks before it closes a secret that was not copied', async () => {
    const page = await open('tokens/new');
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void dialog.dismiss();
    });
    await page.getByLabel('Name', { exact: true }).fill('copied');
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    const secret = page.getByRole('dialog', { name: 'Token copied' });
    await secret.waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => questions).toEqual(['Close without a copy of the token?']);
    await secret.getByRole('button', { name: 'Copy token' }).click();
    await secret.getByText('Copied', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await secret.waitFor({ state: 'detached' });
    expect(questions).toHaveLength(1);
  });

  it('asks before it is closed while a token is created, whose secret is shown once', async () => {
    const page = await open('tokens/new');
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void dialog.dismiss();
    });
    const { promise: asked, resolve: proceed } = Promise.withResolvers<void>();
    await page.route('**/cloudyard/v1/tokens', async (route) => {
      if (route.request().method() === 'POST') await asked;
      await route.continue();
    });
    await page.getByLabel('Name', { exact: true }).fill('late');
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    await page.keyboard.press('Escape');
    await expect.poll(() => questions).toEqual(['Close before the secret is shown?']);
    proceed();
    await page.getByRole('dialog', { name: 'Token late' }).waitFor();
  });

  it('revokes a token after its name was typed', async () => {
    await consoleOf.yard.post('/cloudyard/v1/tokens', { name: 'old', role: 'member' });
    const page = await open('tokens?state=active');
    await page.getByRole('link', { name: 'old', exact: true }).click();
    await page.getByRole('heading', { name: 'old' }).waitFor();
    await page.getByRole('link', { name: 'Audit log' }).last().click();
    await page.getByRole('cell', { name: 'createToken' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Overview' }).last().click();
    await page.getByRole('link', { name: 'Changes by this token' }).click();
    await page.getByText('No entry matches').waitFor();
    await page.goBack();
    await page.goBack();
    await page.getByRole('link', { name: 'Revoke old' }).click();
    const button = page.getByRole('dialog').getByRole('button', { name: 'Revoke token' });
    expect(await button.getAttribute('aria-disabled')).toBe('true');
    await page.getByLabel('Type old to confirm').fill('old');
    await button.click();
    await page.getByText('Revoked token old').waitFor();
    expect(await listed('old')).toMatchObject({ state: 'revoked' });
  });

  it('is not in the navigation of a member', async () => {
    const { body } = await consoleOf.yard.post('/cloudyard/v1/tokens', { name: 'member', role: 'member' });
    const page = await open('quotas', { token: body.token });
    await page.getByRole('link', { name: 'Quotas' }).waitFor();
    expect(await page.getByRole('link', { name: 'Tokens' }).count()).toBe(0);
  });
});
