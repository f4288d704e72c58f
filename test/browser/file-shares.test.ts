import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

async function newShare(name: string, fields: object = {}): Promise<string> {
  const { yard } = consoleOf;
  const networks = await yard.get('/cloud/v1/networks/1/1');
  const network = { network_id: networks.body.results[0].id };
  const answer = await yard.post('/cloud/v1/file_shares/1/1', { name, protocol: 'NFS', size: 1, network, ...fields });
  const task = await yard.ended(answer);
  return task.created_resources.file_shares[0];
}

async function shareNamed(name: string): Promise<any> {
  const { body } = await consoleOf.yard.get(`/cloud/v1/file_shares/1/1?name=${encodeURIComponent(name)}`);
  return body.results.find((share: { name: string }) => share.name === name);
}

const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

describe('a project without a network', () => {
  it('leads from the form of a file share to those of a network and a subnet', async () => {
    const { yard } = consoleOf;
    const { id } = (await yard.post('/cloud/v1/projects', { name: 'empty' })).body;
    const page = await open('overview');
    const at = `${yard.url}/console/p/${id}/r/1`;
    await page.goto(`${at}/file-shares/new`);
    await page.getByText('The project has no network yet.').waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Create a network' }).click();
    // The form of the file share, which has a name too, stays until the next one is loaded.
    const form = page.getByRole('dialog', { name: 'Create network' });
    await form.getByLabel('Name', { exact: true }).fill('first');
    await form.getByRole('button', { name: 'Create network' }).click();
    await page.getByText('Created network first').waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.goto(`${at}/file-shares/new`);
    await page.getByRole('link', { name: 'Create a subnet' }).click();
    await page.getByRole('dialog', { name: 'Create subnet' }).waitFor();
    await page.goto(`${yard.url}/console/p/999/r/1/overview`);
    await page.getByText('The project of this address does not exist').waitFor();
    await page.getByRole('link', { name: 'Go to your first project' }).click();
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  });

  it('shows the error of a field once', async () => {
    const page = await open('file-shares/new');
    await page.getByLabel('Name', { exact: true }).fill('x');
    await page.getByRole('dialog').getByRole('button', { name: 'Create file share' }).click();
    await page
      .getByRole('alert')
      .getByText(/^3 to 63 letters/)
      .waitFor();
    expect(await page.getByText(/^3 to 63 letters/).count()).toBe(1);
    await page.getByLabel('Name', { exact: true }).fill('large');
    await page.getByLabel('Size (GiB)').fill('9999999');
    await page.getByRole('dialog').getByRole('button', { name: 'Create file share' }).click();
    const alert = page.getByRole('alert').filter({ hasText: 'the quota would be exceeded' });
    await alert.waitFor();
    expect(await alert.getByRole('listitem').count()).toBe(0);
  });
});

describe('the pages of file shares', () => {
  it('creates a share with access rules and tags, and shows the price while typing', async () => {
    const page = await open('file-shares');
    await page.getByRole('link', { name: 'Create file share' }).click();
    await page.getByLabel('Name', { exact: true }).fill('media');
    await page.getByLabel('Size (GiB)').fill('20');
    await page.getByText('a month').waitFor();
    await page.getByRole('group', { name: 'Access' }).getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('Address or network 1').fill('10.0.0.0/24');
    await page.getByLabel('Tags').click();
    await page.getByLabel('Key 1').fill('team');
    await page.getByLabel('Value 1').fill('web');
    await page.getByText('The same by code').click();
    for (const [tab, text] of Object.entries({
      curl: '"size": 20',
      Python: 'file_shares.create',
      Terraform: 'gcore_file_share',
    })) {
      await page.getByRole('tab', { name: tab }).click();
      expect(await page.getByRole('tabpanel', { name: tab }).innerText()).toContain(text);
    }
    await submit(page, 'Create file share');
    await page.getByText('Created file share media').waitFor();
    await page.getByRole('cell', { name: 'available' }).waitFor();
    const share = await shareNamed('media');
    expect(share).toMatchObject({ size: 20, tags: [{ key: 'team', value: 'web' }] });
    const rules = await consoleOf.yard.get(`/cloud/v1/file_shares/1/1/${share.id}/access_rule`);
    expect(rules.body.results).toMatchObject([{ access_to: '10.0.0.0/24', access_level: 'rw' }]);
  });

  it('shows at each field what the API would refuse, and keeps the text', async () => {
    const page = await open('file-shares/new');
    await page.getByLabel('Name', { exact: true }).fill('x');
    await page.getByLabel('Size (GiB)').fill('0');
    await submit(page, 'Create file share');
    await page.getByText('must be at least 1').waitFor();
    expect(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('x');
    await checkPage(page);
  });

  it('names tags whose key is missing or listed twice, and sends none of them unseen', async () => {
    const page = await open('file-shares/new');
    await page.getByLabel('Name', { exact: true }).fill('tagged-share');
    await page.getByRole('button', { name: 'Add to Tags' }).click();
    await page.getByLabel('Key 1').fill('team');
    await page.getByLabel('Value 1').fill('web');
    await page.getByRole('button', { name: 'Add to Tags' }).click();
    await page.getByLabel('Value 2').fill('without a key');
    await submit(page, 'Create file share');
    await page.getByRole('alert').getByText('empty key: ').waitFor();
    await page.getByLabel('Key 2').fill('team');
    await page.getByRole('alert').getByText('The key team is listed twice').waitFor();
    await checkPage(page);
    await page.getByRole('button', { name: 'Remove row 1' }).click();
    await page.getByRole('button', { name: 'Remove row 1' }).and(page.locator(':focus')).waitFor();
    const addRule = page.getByRole('group', { name: 'Access' }).getByRole('button', { name: 'Add' });
    await addRule.click();
    await page.getByLabel('Address or network 1').and(page.locator(':focus')).waitFor();
    await page.getByRole('button', { name: 'Remove rule 1' }).click();
    await addRule.and(page.locator(':focus')).waitFor();
    await submit(page, 'Create file share');
    await page.getByText('Created file share tagged-share').waitFor();
    expect(await shareNamed('tagged-share')).toMatchObject({ tags: [{ key: 'team', value: 'without a key' }] });
  });

  it('shows an error of the server at its field', async () => {
    const id = await newShare('server-error');
    const page = await open(`file-shares/${id}/access-rules/new`);
    await page.getByLabel('Address or network').fill('10.0.0.1/24');
    await submit(page, 'Add access rule');
    await page
      .getByRole('alert')
      .getByText(/host bits/)
      .first()
      .waitFor();
    expect(await page.getByLabel('Address or network').inputValue()).toBe('10.0.0.1/24');
  });

  it('edits, extends and deletes a share', async () => {
    const id = await newShare('draft');
    const page = await open(`file-shares/${id}`);
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Name', { exact: true }).fill('final');
    await submit(page, 'Save');
    await page.getByRole('heading', { name: 'final' }).waitFor();
    await page.getByRole('link', { name: 'Extend' }).click();
    await page.getByLabel('New size (GiB)').fill('7');
    await submit(page, 'Extend');
    await page.getByText('Extended file share final to 7 GiB').waitFor();
    expect(await shareNamed('final')).toMatchObject({ id, size: 7 });
    await page.getByRole('link', { name: 'Delete' }).click();
    const button = page.getByRole('dialog').getByRole('button', { name: 'Delete file share' });
    expect(await button.getAttribute('aria-disabled')).toBe('true');
    await page.getByLabel('Type final to confirm').fill('final');
    await submit(page, 'Delete file share');
    await page.getByText('Deleted file share final').waitFor();
    expect(await shareNamed('final')).toBeUndefined();
  });

  it('adds and removes an access rule', async () => {
    const id = await newShare('rules');
    const page = await open(`file-shares/${id}?tab=access`);
    await page.getByRole('link', { name: 'Add access rule' }).click();
    await page.getByLabel('Address or network').fill('192.0.2.0/24');
    await submit(page, 'Add access rule');
    await page.getByRole('cell', { name: 'active', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Remove the rule for 192.0.2.0/24' }).click();
    await page.getByText('The same by code').click();
    await page.getByText(`/file_shares/1/1/${id}/access_rule/`).first().waitFor();
    await submit(page, 'Remove');
    await page.getByText('Nobody may mount this share').waitFor();
    const rules = await consoleOf.yard.get(`/cloud/v1/file_shares/1/1/${id}/access_rule`);
    expect(rules.body.results).toEqual([]);
  });

  it('says what to do about an access rule that the host did not apply', async () => {
    const id = await newShare('rule that fails');
    const fault = { resource: 'file_share', operation: 'apply', mode: 'fail' };
    await consoleOf.yard.insist('POST', '/cloudyard/v1/dev/faults', fault);
    const rules = `/cloud/v1/file_shares/1/1/${id}/access_rule`;
    await consoleOf.yard.insist('POST', rules, { ip_address: '192.0.2.0/24', access_mode: 'ro' });
    const page = await open(`file-shares/${id}?tab=access`);
    await page
      .getByRole('cell', { name: /^error/ })
      .getByText('The host did not apply the change.')
      .waitFor();
    await checkPage(page);
  });

  it('keeps filter and order in the URL', async () => {
    await newShare('alpha');
    await newShare('beta', { size: 3 });
    const page = await open('file-shares?q=a&sort=-size');
    await page.getByRole('link', { name: 'beta' }).waitFor();
    await page.getByLabel('Filter').fill('alph');
    await page.getByRole('link', { name: 'beta' }).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('q')).toBe('alph');
    await page.reload();
    expect(await page.getByLabel('Filter').inputValue()).toBe('alph');
  });

  it('has no accessibility violations on the list and on every tab, in light and dark', async () => {
    const id = await newShare('accessible', { tags: { team: 'web' } });
    const page = await open('file-shares');
    await page.getByRole('link', { name: 'accessible' }).waitFor();
    await checkPage(page);
    for (const tab of ['', '?tab=access', '?tab=tags', '?tab=tasks', '?tab=audit']) {
      await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/file-shares/${id}${tab}`);
      await page.getByRole('heading', { name: 'accessible' }).waitFor();
      await checkPage(page);
    }
  });
});
