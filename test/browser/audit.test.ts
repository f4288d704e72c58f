import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

async function newNetwork(name: string): Promise<string> {
  const { yard } = consoleOf;
  const answer = await yard.post('/cloud/v1/networks/1/1', { name });
  return (await yard.ended(answer)).created_resources.networks[0];
}

async function renamed(id: string, name: string): Promise<void> {
  const { yard } = consoleOf;
  await yard.ended(await yard.patch(`/cloud/v2/networks/1/1/${id}`, { name }));
}

async function exported(page: Page, link: string): Promise<string> {
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: link }).click();
  return readFileSync(await (await download).path(), 'utf8');
}

describe('the pages of the audit log', () => {
  it('filters by operation and resource in the URL, and shows an entry before and after', async () => {
    const id = await newNetwork('old-name');
    await renamed(id, 'new-name');
    const page = await open('audit');
    await page.getByLabel('Resource ID').fill(id);
    await page.getByRole('link', { name: 'updateNetwork' }).waitFor();
    await page.getByRole('searchbox', { name: 'Operation' }).fill('updateNetwork');
    await page.getByRole('link', { name: 'createNetwork' }).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('row_id')).toBe(id);
    await checkPage(page);
    await page.getByRole('link', { name: 'updateNetwork' }).click();
    await page.locator('.audit-before', { hasText: 'old-name' }).waitFor();
    await page.locator('.audit-after', { hasText: 'new-name' }).waitFor();
    await checkPage(page);
  });

  it('shows the operator the changes of one client', async () => {
    const { yard } = consoleOf;
    const { body: client } = await yard.post('/cloudyard/v1/clients', { name: 'tenant' });
    await yard.post('/cloudyard/v1/tokens', { name: 'of-tenant', role: 'admin', client_id: client.id });
    // Without a name.
    await yard.run(['token', 'create', '--client', String(client.id)]);
    const page = await open(`clients/${client.id}`);
    await page.getByRole('link', { name: 'Changes of this client' }).click();
    await page.getByRole('cell', { name: 'tokens: of-tenant' }).waitFor();
    await page.getByRole('cell', { name: 'tokens', exact: true }).waitFor();
    const clients = await page.locator('tbody td:nth-child(4)').allInnerTexts();
    expect([...new Set(clients)]).toEqual([String(client.id)]);
    await checkPage(page);
    await page.getByLabel('Client ID').fill('');
    await page.getByRole('link', { name: 'createClient' }).waitFor();
  });

  it('shows the quotas that changed, which have no ID', async () => {
    const limits = (count: number) => ({ region_id: 1, sfs_count_limit: count, sfs_size_limit: 5000 + count });
    for (const count of [500, 501]) await consoleOf.yard.patch('/cloudyard/v1/clients/1/quotas', limits(count));
    const page = await open('audit?operation=updateClientQuotas');
    await page.getByRole('link', { name: 'updateClientQuotas' }).first().click();
    await page.locator('.audit-after', { hasText: '5501' }).waitFor();
    await page.getByText('quota_counters 1 sfs_count: changed').waitFor();
    await page.getByText('quota_counters 1 sfs_size: changed').waitFor();
    await checkPage(page);
  });

  it('exports the entries that match as CSV and as JSON lines', async () => {
    const id = await newNetwork('exported');
    const page = await open(`audit?row_id=${id}`);
    await page.getByRole('link', { name: 'createNetwork' }).waitFor();
    const lines = (await exported(page, 'Export JSON lines')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ operation: 'createNetwork' }]);
    expect(await exported(page, 'Export CSV')).toContain('createNetwork');
  });

  it('clears a filter that nothing matches', async () => {
    await newNetwork('any');
    const page = await open('audit?operation=%3Cb%3Enothing');
    await page.getByText('No entry matches').waitFor();
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await page.getByRole('link', { name: 'createNetwork' }).first().waitFor();
    expect(new URL(page.url()).search).toBe('');
  });

  it('shows which project the filter of a link names', async () => {
    const page = await open('audit?project_id=7');
    await page.getByText('No entry matches').waitFor();
    expect(await page.getByLabel('Project', { exact: true }).last().inputValue()).toBe('7');
  });

  it('reports an entry that does not exist', async () => {
    const page = await open('audit/999999999');
    await page.getByText('audit entry 999999999 not found').waitFor();
  });
});

describe('the page of prices', () => {
  it('shows the prices of a size that is typed', async () => {
    const page = await open('prices');
    await page.getByRole('cell', { name: '1 vCPU, 2 GiB' }).waitFor();
    const row = page.getByRole('row', { name: 'Volume, standard' });
    await row.getByText('100 GiB').waitFor();
    const before = await row.innerText();
    await page.getByLabel('Size of storage (GiB)').fill('200');
    await row.getByText('200 GiB').waitFor();
    expect(await row.innerText()).not.toBe(before);
    expect(new URL(page.url()).searchParams.get('size')).toBe('200');
    await page.getByRole('row', { name: 'Load balancer' }).first().waitFor();
    await checkPage(page);
    await page.getByLabel('Size of storage (GiB)').fill('0');
    await page.getByText('must be a whole number').waitFor();
  });
});
