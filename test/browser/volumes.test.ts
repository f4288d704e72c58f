import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const VOLUMES = '/cloud/v1/volumes/1/1';
const SNAPSHOTS = '/cloud/v1/snapshots/1/1';

async function newVolume(name: string, fields: object = {}): Promise<string> {
  const { yard } = consoleOf;
  const body = { name, size: 1, source: 'new-volume', ...fields };
  return (await yard.ended(await yard.post(VOLUMES, body))).created_resources.volumes[0];
}

async function newSnapshot(name: string, volumeId: string, fields: object = {}): Promise<string> {
  const { yard } = consoleOf;
  const answer = await yard.post(SNAPSHOTS, { name, volume_id: volumeId, ...fields });
  return (await yard.ended(answer)).created_resources.snapshots[0];
}

async function rowNamed(path: string, name: string): Promise<any> {
  const { body } = await consoleOf.yard.get(path);
  return body.results.find((row: { name: string }) => row.name === name);
}

const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

describe('the pages of volumes', () => {
  it('creates an empty volume with tags, and shows the price while typing', async () => {
    const page = await open('volumes');
    await page.getByRole('link', { name: 'Create volume' }).click();
    await page.getByLabel('Name', { exact: true }).fill('data');
    await page.getByLabel('Size (GiB)').fill('3');
    await page.getByText('a month').waitFor();
    await page.getByLabel('Tags').click();
    await page.getByLabel('Key 1').fill('team');
    await page.getByLabel('Value 1').fill('web');
    await submit(page, 'Create volume');
    await page.getByText('Created volume data').waitFor();
    await page.getByRole('cell', { name: 'available' }).waitFor();
    expect(await rowNamed(VOLUMES, 'data')).toMatchObject({
      size: 3,
      volume_type: 'standard',
      tags: [{ key: 'team', value: 'web' }],
    });
  });

  it('lists the tasks of a volume, of each with the names of resources', async () => {
    const { yard } = consoleOf;
    const id = await newVolume('with tasks');
    await yard.ended(await yard.post(`${VOLUMES}/${id}/extend`, { size: 5 }));
    await newVolume('another');
    const page = await open(`volumes/${id}?tab=tasks`);
    const table = page.getByRole('table', { name: 'Tasks' });
    await table.getByRole('link', { name: 'Extend volume' }).waitFor();
    await table.getByRole('link', { name: 'Create volume' }).waitFor();
    expect(await table.locator('tbody tr').count()).toBe(2);
    await table.getByRole('link', { name: 'Extend volume' }).click();
    await page.getByRole('link', { name: 'with tasks' }).click();
    await page.getByRole('heading', { name: 'with tasks' }).waitFor();
  });

  it('creates a volume from the snapshot whose page opened the form', async () => {
    const snapshot = await newSnapshot(
      'before upgrade',
      await newVolume('source', { size: 2, type_name: 'ssd_hiiops' }),
    );
    const page = await open(`snapshots/${snapshot}`);
    await page.getByRole('link', { name: 'Create volume' }).click();
    await page.getByRole('option', { name: 'before upgrade' }).waitFor({ state: 'attached' });
    expect(await page.getByLabel('Snapshot', { exact: true }).inputValue()).toBe(snapshot);
    await page.getByLabel('Name', { exact: true }).fill('copy');
    await page.getByText('The same by code').click();
    await page.getByRole('tab', { name: 'Terraform' }).click();
    const code = page.getByRole('tabpanel', { name: 'Terraform' });
    await expect.poll(() => code.innerText()).toMatch(/size += 2\n +type_name += "ssd_hiiops"/);
    await submit(page, 'Create volume');
    await page.getByText('Created volume copy').waitFor();
    expect(await rowNamed(VOLUMES, 'copy')).toMatchObject({ size: 2, volume_type: 'ssd_hiiops' });
  });

  it('shows at each field what the API would refuse, and keeps the text', async () => {
    const page = await open('volumes/new');
    await page.getByLabel('Name', { exact: true }).fill('<b>!');
    await page.getByLabel('Size (GiB)').fill('0');
    await submit(page, 'Create volume');
    await page.getByText('must be at least 1').waitFor();
    expect(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('<b>!');
    await checkPage(page);
  });

  it('shows an error of the server and keeps the text', async () => {
    const page = await open('volumes/new');
    await page.getByLabel('Name', { exact: true }).fill('too-large');
    await page.getByLabel('Size (GiB)').fill('900000000');
    await submit(page, 'Create volume');
    await page.locator('.form .notice.bad').waitFor();
    expect(await page.getByLabel('Size (GiB)').inputValue()).toBe('900000000');
    expect(await rowNamed(VOLUMES, 'too-large')).toBeUndefined();
  });

  it('edits, extends, retypes and deletes a volume', async () => {
    const id = await newVolume('draft');
    const page = await open(`volumes/${id}`);
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Name', { exact: true }).fill('final');
    await submit(page, 'Save');
    await page.getByRole('heading', { name: 'final' }).waitFor();
    await page.getByRole('link', { name: 'Extend' }).click();
    await page.getByLabel('New size (GiB)').fill('4');
    await submit(page, 'Extend');
    await page.getByText('Extended volume final to 4 GiB').waitFor();
    await page.getByRole('link', { name: 'Change type' }).click();
    await page.getByLabel('New type').selectOption('ssd_hiiops');
    await submit(page, 'Change type');
    await page.getByText('Changed the type of volume final to ssd_hiiops').waitFor();
    expect(await rowNamed(VOLUMES, 'final')).toMatchObject({ id, size: 4, volume_type: 'ssd_hiiops' });
    await page.getByRole('link', { name: 'Delete' }).click();
    const button = page.getByRole('dialog').getByRole('button', { name: 'Delete volume' });
    expect(await button.getAttribute('aria-disabled')).toBe('true');
    await page.getByLabel('Type final to confirm').fill('final');
    await button.click();
    await page.getByText('Deleted volume final').waitFor();
    expect(await rowNamed(VOLUMES, 'final')).toBeUndefined();
  });

  it('reverts a volume to its newest snapshot after its name was typed', async () => {
    const id = await newVolume('ledger');
    await newSnapshot('older', id);
    await newSnapshot('newer', id);
    const page = await open(`volumes/${id}`);
    await page.getByRole('link', { name: 'Revert' }).click();
    await page.getByText('its newest snapshot, newer').waitFor();
    const button = page.getByRole('dialog').getByRole('button', { name: 'Revert volume' });
    expect(await button.getAttribute('aria-disabled')).toBe('true');
    await checkPage(page);
    await page.getByLabel('Type ledger to confirm').fill('ledger');
    await button.click();
    await page.getByText('Reverted volume ledger').waitFor();
    const audit = await consoleOf.yard.get(`/cloudyard/v1/audit?operation=revertVolume&row_id=${id}`);
    expect(audit.body.results).toHaveLength(1);
  });

  it('has no accessibility violations on the list and on every tab, in light and dark', async () => {
    const id = await newVolume('accessible', { tags: { team: 'שלום <b>🙂</b>'.repeat(10) } });
    await newSnapshot('kept', id);
    const page = await open('volumes');
    await page.getByRole('link', { name: 'accessible' }).waitFor();
    await checkPage(page);
    for (const tab of ['', '?tab=snapshots', '?tab=tags', '?tab=tasks', '?tab=audit']) {
      await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/volumes/${id}${tab}`);
      await page.getByRole('heading', { name: 'accessible' }).waitFor();
      await checkPage(page);
    }
  });
});

describe('the pages of snapshots', () => {
  it('creates a snapshot on the page of its volume and shows it there', async () => {
    const id = await newVolume('with-snapshots');
    const page = await open(`volumes/${id}`);
    await page.getByRole('link', { name: 'Create snapshot' }).click();
    await page.getByLabel('Name', { exact: true }).fill('monday');
    await page.getByLabel('Description').fill('before the <i>upgrade</i>');
    await submit(page, 'Create snapshot');
    await page.getByRole('link', { name: 'monday' }).waitFor();
    await page.getByRole('cell', { name: 'available' }).waitFor();
    expect(await rowNamed(SNAPSHOTS, 'monday')).toMatchObject({
      volume_id: id,
      description: 'before the <i>upgrade</i>',
    });
  });

  it('creates, edits and deletes a snapshot from the list', async () => {
    const id = await newVolume('archive');
    const page = await open('snapshots/new');
    await submit(page, 'Create snapshot');
    await page.getByText('is required').first().waitFor();
    await page.getByRole('dialog').getByLabel('Volume', { exact: true }).selectOption(id);
    await page.getByLabel('Name', { exact: true }).fill('tuesday');
    await submit(page, 'Create snapshot');
    await page.getByText('Created snapshot tuesday').waitFor();
    await page.getByRole('link', { name: 'tuesday' }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Name', { exact: true }).fill('wednesday');
    await submit(page, 'Save');
    await page.getByRole('heading', { name: 'wednesday' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type wednesday to confirm').fill('wednesday');
    await submit(page, 'Delete snapshot');
    await page.getByText('Deleted snapshot wednesday').waitFor();
    expect(await rowNamed(SNAPSHOTS, 'wednesday')).toBeUndefined();
  });

  it('has no accessibility violations on the list, and keeps its filter in the URL', async () => {
    const id = await newVolume('filtered');
    await newSnapshot('first', id);
    await newSnapshot('second', id);
    const page = await open('snapshots?volume=filtered&sort=-name');
    await page.getByRole('link', { name: 'second' }).waitFor();
    await checkPage(page);
    await page.getByLabel('Filter').fill('first');
    await page.getByRole('link', { name: 'second' }).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('q')).toBe('first');
  });
});
