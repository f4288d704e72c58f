import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const CLIENTS = '/cloudyard/v1/clients';

describe('the page of clients', () => {
  it('creates a client, shows an error at its field, and renames it', async () => {
    const page = await open('clients');
    await page.getByRole('link', { name: 'Create client' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Create client' }).click();
    await page.getByRole('alert').first().waitFor();
    expect(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid')).toBe('true');
    await page.getByLabel('Name', { exact: true }).fill('<b>Kunde</b> 🚀');
    await page.getByRole('dialog').getByRole('button', { name: 'Create client' }).click();
    await page.getByText('Created client <b>Kunde</b> 🚀').waitFor();
    await page.getByRole('link', { name: 'Edit <b>Kunde</b> 🚀' }).click();
    await page.getByLabel('Name', { exact: true }).fill('عميل');
    await page.getByRole('group', { name: 'E-mail addresses' }).getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('Address 1').fill('ops@example.com');
    await checkPage(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('Updated client عميل').waitFor();
    const { body } = await consoleOf.yard.get(CLIENTS);
    expect(body.results.at(-1)).toMatchObject({ name: 'عميل', emails: ['ops@example.com'] });
    await page.getByText('ops@example.com').waitFor();
    await page.getByRole('link', { name: 'Audit log' }).last().click();
    await page.getByRole('cell', { name: 'updateClient' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Clients' }).last().click();
    await page.getByRole('link', { name: 'عميل', exact: true }).waitFor();
    await checkPage(page);
  });
});

describe('the form of a token', () => {
  it('is for the client that was created, or whose tokens are listed', async () => {
    const page = await open('clients/new');
    await page.getByLabel('Name', { exact: true }).fill('tenant');
    await page.getByRole('dialog').getByRole('button', { name: 'Create client' }).click();
    await page.getByRole('link', { name: 'Create its token' }).click();
    const { body } = await consoleOf.yard.get(CLIENTS);
    const { id } = body.results.find(({ name }: { name: string }) => name === 'tenant');
    const client = page.getByRole('dialog').getByLabel('Client');
    await expect.poll(() => client.inputValue()).toBe(String(id));
    await page.getByLabel('Name', { exact: true }).fill('first');
    await page.getByRole('dialog').getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('link', { name: 'first', exact: true }).waitFor();
    const tokens = await consoleOf.yard.get(`/cloudyard/v1/tokens?client_id=${id}`);
    expect(tokens.body.results).toMatchObject([{ name: 'first', client_id: id }]);
  });
});

describe('the page of the quota audit', () => {
  it('shows a usage that differs, and the command that repairs it', async () => {
    const page = await open('quota-audit');
    await page.getByText('All usages match the resources').waitFor();
    await checkPage(page);
    await consoleOf.yard.sql("update quota_counters set usage = usage + 7 where kind = 'network_count'");
    await page.getByRole('button', { name: 'Compare again' }).click();
    await page.getByRole('cell', { name: 'network count' }).first().waitFor();
    expect(await page.locator('pre').innerText()).toBe('cloudyard quota audit --repair');
    await checkPage(page);
    await consoleOf.yard.sql("update quota_counters set usage = usage - 7 where kind = 'network_count'");
    await page.getByRole('button', { name: 'Compare again' }).click();
    await page.getByText('All usages match the resources').waitFor();
  });
});

describe('the page of regions', () => {
  it('shows each region with its live workers', async () => {
    const { body } = await consoleOf.yard.get('/cloud/v1/regions');
    const page = await open('regions');
    const table = page.getByRole('table', { name: 'Regions' });
    await table.getByRole('link', { name: body.results[0].display_name }).waitFor();
    expect(await table.getByRole('row').count()).toBe(body.count + 1);
    await checkPage(page);
  });
});

describe('the pages of the operator', () => {
  it('are not in the navigation of a reader', async () => {
    const { body } = await consoleOf.yard.post('/cloudyard/v1/tokens', { name: 'reader', role: 'reader' });
    const page = await open('quotas', { token: body.token });
    await page.getByRole('link', { name: 'Quotas' }).waitFor();
    expect(await page.getByRole('region', { name: 'Operator' }).count()).toBe(0);
  });
});
