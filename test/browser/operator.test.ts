import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const CLIENTS = '/cloudyard/v1/clients';

/** Creates a token for an admin of the client. */
async function tokenOf(clientId: number): Promise<string> {
  const token = { name: 'admin', role: 'admin', client_id: clientId };
  return (await consoleOf.yard.insist('POST', '/cloudyard/v1/tokens', token)).body.token;
}

async function projectOf(clientId: number): Promise<number> {
  const [project] = await consoleOf.yard.sql<{ id: number }>('select id from projects where client_id = $1', [
    clientId,
  ]);
  return project!.id;
}

async function postAs(token: string, path: string, body: object): Promise<void> {
  const headers = { Authorization: `apikey ${token}`, 'Content-Type': 'application/json' };
  const { status } = await fetch(`${consoleOf.yard.url}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  expect(status).toBeLessThan(300);
}

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

describe('the quotas of a client', () => {
  it('are shown, and a limit is set and reset', async () => {
    const { yard } = consoleOf;
    const { body } = await yard.post(CLIENTS, { name: 'limited' });
    const limitOf = async (kind: string) =>
      (await yard.get(`/cloud/v2/regional_quotas/${body.id}/1`)).body[`${kind}_limit`];
    const byDefault = await limitOf('volume_count');
    const page = await open(`clients/${body.id}?tab=quotas`);
    await page.getByRole('meter', { name: 'Volumes', exact: true }).waitFor();
    await checkPage(page);
    const typeLimit = async (limit: string) => {
      await page.getByRole('link', { name: 'Set limit' }).click();
      await page.getByLabel('Quota', { exact: true }).selectOption('volume_count');
      await page.getByLabel('Limit', { exact: true }).fill(limit);
    };
    const send = () => page.getByRole('dialog').getByRole('button', { name: 'Set limit' }).click();
    await typeLimit(String(byDefault));
    await page.getByRole('dialog').getByText('Nothing has changed').waitFor();
    await page.getByLabel('Limit', { exact: true }).fill('-1');
    await send();
    await page.getByText('must be at least 0').waitFor();
    await checkPage(page);
    await page.getByLabel('Limit', { exact: true }).fill('7');
    await send();
    await page.getByText('0 of 7', { exact: true }).waitFor();
    expect(await limitOf('volume_count')).toBe(7);
    await typeLimit('');
    await send();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await limitOf('volume_count')).toBe(byDefault);
  });

  it('follow changes of the client', async () => {
    const { yard } = consoleOf;
    const { body } = await yard.post(CLIENTS, { name: 'growing' });
    const token = await tokenOf(body.id);
    const page = await open(`clients/${body.id}?tab=quotas`);
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await page.getByRole('meter', { name: 'Volumes', exact: true }).waitFor();
    await postAs(token, `/cloud/v1/volumes/${await projectOf(body.id)}/1`, {
      name: 'data',
      size: 1,
      source: 'new-volume',
    });
    await page.getByRole('meter', { name: 'Volumes', exact: true }).and(page.locator('[aria-valuenow="1"]')).waitFor();
  });

  it('are changed by the operator only', async () => {
    const { yard } = consoleOf;
    const { body: client } = await yard.post(CLIENTS, { name: 'own' });
    const page = await open('overview', { token: await tokenOf(client.id) });
    await page.goto(`${yard.url}/console/p/${await projectOf(client.id)}/r/1/clients/${client.id}`);
    const limit = page.getByRole('button', { name: /^Set limit/ });
    await limit.waitFor();
    expect(await limit.getAttribute('title')).toBe('The client of this session is not the operator');
    await page.getByRole('link', { name: 'Edit', exact: true }).waitFor();
  });

  it('show in the dialog of a limit why they could not be read', async () => {
    const page = await open('clients/1');
    await page.route('**/global_quotas/1', (route) =>
      route.fulfill({ status: 400, json: { message: 'not readable' } }),
    );
    await page.getByRole('link', { name: 'Set limit' }).click();
    await page.getByRole('dialog', { name: 'Set limit' }).getByText('not readable').waitFor();
  });

  it('are linked from a request', async () => {
    const { yard } = consoleOf;
    const { body: client } = await yard.post(CLIENTS, { name: 'asking' });
    const limits = { regional_limits: [{ region_id: 1, volume_count_limit: 5000 }] };
    await postAs(await tokenOf(client.id), '/cloud/v2/limits_request', {
      description: 'more',
      requested_limits: limits,
    });
    const page = await open('quotas?status=in+progress');
    await page.getByRole('cell', { name: 'in progress' }).locator('.busy').waitFor();
    await page.getByRole('link', { name: 'asking' }).click();
    await page.getByRole('heading', { name: 'asking', level: 1 }).waitFor();
    await page.getByRole('meter', { name: 'Volumes', exact: true }).waitFor();
  });
});

describe('the form of a quota request', () => {
  it('takes a limit of 0', async () => {
    const { yard } = consoleOf;
    const page = await open('quotas/requests/new');
    await page.getByLabel('Quota 1').selectOption('snapshot_schedule_count');
    const limit = page.getByLabel('New limit 1');
    await limit.fill('1');
    await limit.press('ArrowDown');
    expect(await limit.inputValue()).toBe('0');
    await page.getByLabel('Why').fill('No schedules in this region');
    await page.getByRole('dialog').getByRole('button', { name: 'Send request' }).click();
    await page.getByText('The request was sent to the operator').waitFor();
    const { body } = await yard.get('/cloud/v2/limits_request?limit=1');
    expect(body.results[0].requested_limits.regional_limits).toEqual([
      { region_id: 1, snapshot_schedule_count_limit: 0 },
    ]);
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
