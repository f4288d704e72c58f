import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const NETWORKS = '/cloud/v1/networks/1/1';
const SUBNETS = '/cloud/v1/subnets/1/1';

async function newNetwork(name: string, fields: object = {}): Promise<string> {
  const { yard } = consoleOf;
  return (await yard.ended(await yard.post(NETWORKS, { name, ...fields }))).created_resources.networks[0];
}

async function newSubnet(name: string, networkId: string, fields: object = {}): Promise<string> {
  const { yard } = consoleOf;
  const answer = await yard.post(SUBNETS, { name, network_id: networkId, cidr: '10.9.0.0/24', ...fields });
  return (await yard.ended(answer)).created_resources.subnets[0];
}

async function rowNamed(path: string, name: string): Promise<any> {
  const { body } = await consoleOf.yard.get(path);
  return body.results.find((row: { name: string }) => row.name === name);
}

const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

describe('the pages of networks', () => {
  it('creates, edits and deletes a network with tags', async () => {
    const page = await open('networks');
    await page.getByRole('link', { name: 'Create network' }).click();
    await page.getByLabel('Name', { exact: true }).fill('backend');
    await page.getByRole('dialog').getByLabel('Type').selectOption('vlan');
    await submit(page, 'Create network');
    await page.getByText('Created network backend').waitFor();
    await page.getByRole('link', { name: 'backend' }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Name', { exact: true }).fill('frontend');
    await page.getByLabel('Tags').click();
    await page.getByLabel('Key 1').fill('team');
    await page.getByLabel('Value 1').fill('web');
    await submit(page, 'Save');
    await page.getByText('Updated network backend').waitFor();
    expect(await rowNamed(NETWORKS, 'frontend')).toMatchObject({ type: 'vlan', tags: [{ key: 'team', value: 'web' }] });
    await page.getByRole('heading', { name: 'frontend' }).waitFor();
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type frontend to confirm').fill('frontend');
    await submit(page, 'Delete network');
    await page.getByText('Deleted network frontend').waitFor();
    expect(await rowNamed(NETWORKS, 'frontend')).toBeUndefined();
  });

  it('shows at its field what the API would refuse, and keeps the text', async () => {
    const page = await open('networks/new');
    await page.getByLabel('Name', { exact: true }).fill('<i>');
    await submit(page, 'Create network');
    await page.getByRole('alert').getByText('3 to 63 letters').waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('<i>');
    await checkPage(page);
  });

  it('has no accessibility violations on the list and on every tab, in light and dark', async () => {
    const id = await newNetwork('accessible', { tags: { note: '<b>'.repeat(80) } });
    await newSubnet('inner', id);
    const page = await open('networks');
    await page.getByRole('link', { name: 'accessible' }).waitFor();
    await checkPage(page);
    for (const tab of ['', '?tab=tags', '?tab=tasks', '?tab=audit']) {
      await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/networks/${id}${tab}`);
      await page.getByRole('heading', { name: 'accessible' }).waitFor();
      await checkPage(page);
    }
  });
});

describe('the pages of subnets', () => {
  it('creates a subnet with DNS servers and routes on the page of its network', async () => {
    const id = await newNetwork('with-subnet');
    const page = await open(`networks/${id}`);
    await page.getByRole('link', { name: 'Create subnet' }).click();
    await page.getByLabel('Name', { exact: true }).fill('office');
    await page.getByLabel('Address range').fill('10.8.0.0/24');
    const dns = page.getByRole('group', { name: 'DNS servers' });
    await dns.getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('DNS server 1', { exact: true }).fill('192.0.2.53');
    await page.getByRole('group', { name: 'Static routes' }).getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('Destination 1').fill('10.99.0.0/16');
    await page.getByLabel('Router 1').fill('10.8.0.2');
    await submit(page, 'Create subnet');
    await page.getByRole('link', { name: 'office' }).waitFor();
    const subnet = await rowNamed(SUBNETS, 'office');
    expect(subnet).toMatchObject({
      network_id: id,
      cidr: '10.8.0.0/24',
      gateway_ip: '10.8.0.1',
      dns_nameservers: ['192.0.2.53'],
      host_routes: [{ destination: '10.99.0.0/16', nexthop: '10.8.0.2' }],
    });
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/tasks/${subnet.creator_task_id}`);
    await page.getByRole('link', { name: subnet.id }).click();
    await page.getByRole('heading', { name: 'office' }).waitFor();
  });

  it('shows an error of the server at the row of its list', async () => {
    const id = await newNetwork('bad-routes');
    const page = await open(`networks/${id}/subnets/new`);
    await page.getByLabel('Name', { exact: true }).fill('broken');
    await page.getByLabel('Address range').fill('10.7.0.0/24');
    await page.getByRole('group', { name: 'DNS servers' }).getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('DNS server 1', { exact: true }).fill('nowhere');
    await submit(page, 'Create subnet');
    await page.locator('[aria-label="DNS server 1"][aria-invalid=true]').waitFor();
    await checkPage(page);
    expect(await rowNamed(SUBNETS, 'broken')).toBeUndefined();
  });

  it('edits and deletes a subnet', async () => {
    const id = await newSubnet('draft', await newNetwork('around-draft'));
    const page = await open('subnets?network=around-draft');
    await page.getByRole('link', { name: 'draft', exact: true }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Name', { exact: true }).fill('final');
    await page.getByLabel('No gateway').check();
    await page.getByLabel('DHCP').uncheck();
    await submit(page, 'Save');
    await page.getByText('Updated subnet final').waitFor();
    expect(await rowNamed(SUBNETS, 'final')).toMatchObject({ id, gateway_ip: null, enable_dhcp: false });
    await checkPage(page);
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type final to confirm').fill('final');
    await submit(page, 'Delete subnet');
    await page.getByText('Deleted subnet final').waitFor();
    expect(await rowNamed(SUBNETS, 'final')).toBeUndefined();
  });

  it('has no accessibility violations on the list', async () => {
    await newSubnet('listed', await newNetwork('around-listed'));
    const page = await open('subnets?q=listed');
    await page.getByRole('link', { name: 'listed', exact: true }).waitFor();
    await checkPage(page);
  });
});
