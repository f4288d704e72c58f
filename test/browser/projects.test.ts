import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const PATH = '/cloud/v1/projects';

const newProject = async (name: string): Promise<number> => (await consoleOf.yard.post(PATH, { name })).body.id;

describe('the page of projects', () => {
  it('creates a project, shows errors at the field, and edits it', async () => {
    const page = await open('projects');
    await page.getByRole('link', { name: 'Create project' }).click();
    await page.getByLabel('Name', { exact: true }).fill('<b>');
    await page.getByRole('dialog').getByRole('button', { name: 'Create project' }).click();
    await page.getByRole('alert').first().waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('<b>');
    await page.getByLabel('Name', { exact: true }).fill('web-team');
    await page.getByLabel('Description').fill('<i>مشروع</i>');
    await checkPage(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Create project' }).click();
    await page.getByText('Created project web-team').waitFor();
    await page.getByRole('cell', { name: '<i>مشروع</i>' }).waitFor();
    await page.getByRole('link', { name: 'Edit web-team' }).click();
    await page.getByLabel('Name', { exact: true }).fill('site-team');
    await page.getByLabel('Description').fill('');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('Updated project site-team').waitFor();
    const { body } = await consoleOf.yard.get(`${PATH}?name=site-team`);
    expect(body.results).toMatchObject([{ name: 'site-team', description: null }]);
    await checkPage(page);
  });

  it('deletes an empty project, and names the contents of another one', async () => {
    const { yard } = consoleOf;
    const id = await newProject('archive');
    const volume = await yard.ended(
      await yard.post(`/cloud/v1/volumes/${id}/1`, { name: 'data', size: 1, source: 'new-volume' }),
    );
    const page = await open(`projects/${id}?tab=audit`);
    await page.getByRole('cell', { name: 'createProject' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type archive to confirm').fill('archive');
    await page.getByRole('button', { name: 'Delete project' }).click();
    await page
      .getByRole('alert')
      .getByText(/volume/)
      .first()
      .waitFor();
    expect(await page.getByLabel('Type archive to confirm').inputValue()).toBe('archive');
    await yard.ended(await yard.delete(`/cloud/v1/volumes/${id}/1/${volume.created_resources.volumes[0]}`));
    await page.getByRole('button', { name: 'Delete project' }).click();
    await page.getByText('Deleted project archive').waitFor();
    expect((await yard.get(`${PATH}?name=archive`)).body.results).toEqual([]);
  });

  it('disables the actions of a reader with the reason', async () => {
    const { body } = await consoleOf.yard.post('/cloudyard/v1/tokens', { name: 'reader', role: 'reader' });
    const page = await open('projects', { token: body.token });
    const button = page.getByRole('button', { name: /Create project/ });
    await button.waitFor();
    expect(await button.getAttribute('title')).toBe('The token of this session is read-only');
  });
});

describe('a token whose only project was deleted', () => {
  it('opens no page, and can be signed out', async () => {
    const { yard } = consoleOf;
    const { body: project } = await yard.insist('POST', '/cloud/v1/projects', { name: 'short-lived' });
    const { body } = await yard.post('/cloudyard/v1/tokens', {
      name: 'left',
      role: 'member',
      project_ids: [project.id],
    });
    await yard.delete(`/cloud/v1/projects/${project.id}`);
    const page = await open('overview', { token: body.token });
    await page.getByRole('link', { name: 'Go to your first project' }).click();
    await page.getByRole('heading', { name: 'No project', level: 1 }).waitFor();
    expect(await page.title()).toBe('No project · Cloudyard');
    await checkPage(page);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API token').waitFor();
  });
});

describe('a client with more than 1,000 projects', () => {
  it('has the name of the oldest in the switcher, and all of them in the list', async () => {
    // More than the quota allows, and than the API creates in a reasonable time.
    await consoleOf.yard.sql(
      `insert into projects (client_id, name, is_default, created_at)
       select 1, 'many-' || number, false, now() from generate_series(1, 1100) number`,
    );
    const page = await open('webhooks');
    await page.getByRole('heading', { name: 'No webhooks yet' }).waitFor();
    const shown = page.getByLabel('Project', { exact: true }).locator('option:checked');
    await expect.poll(() => shown.innerText()).toBe('Default');
    await page.getByRole('link', { name: 'Projects', exact: true }).click();
    await page
      .getByRole('navigation', { name: 'Pages' })
      .getByText(/^1–50 of 1,1\d\d$/)
      .waitFor();
  });
});
