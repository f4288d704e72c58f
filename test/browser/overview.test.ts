import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const shares = '/cloud/v1/file_shares/1/1';

/** Makes the next operation of file shares fail, and creates a share. Returns the ID of the task. */
async function failedTask(name: string): Promise<string> {
  const { yard } = consoleOf;
  await yard.post('/cloudyard/v1/dev/faults', { resource: 'file_share', operation: 'apply', mode: 'fail' });
  const networks = await yard.get('/cloud/v1/networks/1/1');
  const network = { network_id: networks.body.results[0].id };
  const { body } = await yard.post(shares, { name, protocol: 'NFS', size: 1, network });
  await yard.get(`/cloud/v1/tasks/${body.tasks[0]}?wait=30`);
  return body.tasks[0];
}

describe('the overview', () => {
  it('offers the first steps in an empty project', async () => {
    const page = await open('overview');
    await page.getByRole('heading', { name: 'Getting started' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Share files' }).click();
    await page.getByRole('dialog', { name: 'Create file share' }).waitFor();
  });

  it('shows failed tasks until they are acknowledged, and which drivers are simulated', async () => {
    const id = await failedTask('to-fail');
    const page = await open('overview');
    await page.getByText('failed by an injected fault').first().waitFor();
    await expect.poll(() => page.getByText('simulated', { exact: true }).count()).toBeGreaterThan(3);
    await page.getByRole('link', { name: /Create file share .*injected/ }).click();
    await page.getByRole('button', { name: /^Acknowledge / }).press('Enter');
    // It keeps the focus.
    await page
      .getByRole('button', { name: /^Acknowledged / })
      .and(page.locator(':focus'))
      .waitFor();
    const { body } = await consoleOf.yard.get(`/cloud/v1/tasks/${id}`);
    expect(body.acknowledged_at).not.toBeNull();
  });
});

describe('the tasks', () => {
  it('are filtered by state and type in the URL, and acknowledged together', async () => {
    const id = await failedTask('to-fail-2');
    const page = await open('tasks?state=ERROR&acknowledged=no');
    await page.getByRole('cell', { name: 'error', exact: true }).waitFor();
    await page.getByRole('link', { name: 'to-fail-2' }).waitFor();
    await checkPage(page);
    await page.getByRole('button', { name: 'Started' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('started');
    await page.getByLabel('Type').fill('delete_sfs');
    await page.getByText('No task matches the filter').waitFor();
    expect(new URL(page.url()).searchParams.get('type')).toBe('delete_sfs');
    await page.getByRole('link', { name: 'Acknowledge all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Acknowledge all' }).click();
    await page.getByText('All tasks are acknowledged').waitFor();
    expect((await consoleOf.yard.get(`/cloud/v1/tasks/${id}`)).body.acknowledged_at).not.toBeNull();
  });
});

describe('a task that deletes a part of a load balancer', () => {
  it('links to the load balancer, which is not deleted', async () => {
    const { yard } = consoleOf;
    const listeners = [{ name: 'web', protocol: 'HTTP', protocol_port: 80 }];
    const { body } = await yard.post('/cloud/v1/loadbalancers/1/1', { name: 'with-parts', listeners });
    const { created_resources: made } = (await yard.get(`/cloud/v1/tasks/${body.tasks[0]}?wait=30`)).body;
    const deletion = await yard.delete(`/cloud/v1/lblisteners/1/1/${made.listeners[0]}`);
    await yard.get(`/cloud/v1/tasks/${deletion.body.tasks[0]}?wait=30`);
    const page = await open('tasks?type=delete_lblistener');
    await page
      .getByRole('row', { name: /Delete listener/ })
      .getByRole('link', { name: 'with-parts' })
      .waitFor();
    await page.getByText('deleted', { exact: true }).waitFor({ state: 'hidden' });

    await page.route(/\/cloud\/v1\/loadbalancers\//, (route) => route.abort());
    await page.reload();
    await page.locator(`a[title="${made.loadbalancers[0]}"]`).waitFor();
  });
});

describe('the tasks that are not acknowledged', () => {
  it('keep the focus in the list while each is acknowledged, and then in the page', async () => {
    await failedTask('to-fail-3');
    await failedTask('to-fail-4');
    const page = await open('tasks?state=ERROR&acknowledged=no');
    const buttons = page.getByRole('button', { name: /^Acknowledge Create/ });
    await expect.poll(() => buttons.count()).toBe(2);
    await buttons.first().press('Enter');
    await expect.poll(() => buttons.count()).toBe(1);
    await buttons.and(page.locator(':focus')).press('Enter');
    await page.getByText('No task matches the filter').waitFor();
    await page.locator('main:focus').waitFor();
  });
});

describe('a task', () => {
  it('that took almost two minutes shows two minutes', async () => {
    const { yard } = consoleOf;
    const { id } = await yard.ended(await yard.insist('POST', '/cloud/v1/networks/1/1', { name: 'slow' }));
    await yard.sql("update tasks set finished_on = created_on + interval '119.7 seconds' where id = $1", [id]);
    const page = await open(`tasks/${id}`);
    await page.getByText('2 min 0 s').waitFor();
  });

  it('of a deletion that fails is linked from the message', async () => {
    const { yard } = consoleOf;
    const { body } = await yard.get('/cloud/v1/networks/1/1');
    const network = body.results.find((each: { default: boolean }) => each.default);
    const share = { name: 'to-stay', protocol: 'NFS', size: 1, network: { network_id: network.id } };
    const { created_resources: created } = await yard.ended(await yard.insist('POST', shares, share));
    await yard.post('/cloudyard/v1/dev/faults', { resource: 'file_share', operation: 'remove', mode: 'fail' });
    const page = await open(`file-shares/${created.file_shares[0]}/delete`);
    await page.getByLabel('Type to-stay to confirm').fill('to-stay');
    await page.getByRole('button', { name: 'Delete file share' }).click();
    await page.locator('.toast.bad').getByRole('link', { name: 'Open the task' }).click();
    await page.getByRole('heading', { name: 'Delete file share', level: 1 }).waitFor();
  });
});

describe('quotas', () => {
  it('show usage, and the threshold is set and reset', async () => {
    const page = await open('quotas');
    await page.getByRole('meter', { name: 'Networks' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Edit threshold' }).click();
    await page.getByLabel('Percent of a quota').fill('101');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('must be at most 100').waitFor();
    await page.getByLabel('Percent of a quota').fill('65');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('When a quota reaches 65 %').waitFor();
    await page.getByRole('link', { name: 'Reset threshold' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click();
    await page.getByText('When a quota reaches 80 %').waitFor();
  });

  it('are requested by a client and approved by the operator', async () => {
    const page = await open('quotas/requests/new');
    await page.getByLabel('Quota 1').selectOption({ label: 'Volumes (now 1,000)' });
    await page.getByLabel('New limit 1').fill('-1');
    await page.getByLabel('Why').fill('We move <b>everything</b> here');
    await page.getByRole('button', { name: 'Send request' }).click();
    await page.getByRole('group', { name: 'Limits' }).getByText('Volumes: must be at least 0').waitFor();
    expect(await page.getByLabel('New limit 1').getAttribute('aria-invalid')).toBe('true');
    await checkPage(page);
    await page.getByLabel('New limit 1').fill('2000');
    await page.getByRole('button', { name: 'Send request' }).click();
    await page.getByRole('cell', { name: 'Volumes: 2,000 (region 1)' }).waitFor();
    await page.getByText('We move <b>everything</b> here').waitFor();
    await page.getByRole('link', { name: 'Approve' }).click();
    await page.getByLabel('Reason').fill('granted');
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('cell', { name: 'done' }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const { body } = await consoleOf.yard.get('/cloud/v2/regional_quotas/1/1');
    expect(body.volume_count_limit).toBe(2000);
    const limits = { regional_limits: [{ region_id: 1, volume_count_limit: 3000 }] };
    await consoleOf.yard.post('/cloud/v2/limits_request', { description: 'By mistake.', requested_limits: limits });
    await page.reload();
    // That of the approved request is disabled.
    await page.getByRole('link', { name: /^Delete request/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete request' }).click();
    await page.getByText('By mistake.').waitFor({ state: 'detached' });
  });
});
