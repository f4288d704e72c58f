/** What the console shows when a resource, a read or a response fails. */
import type { Route } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

/** Makes the next change of this kind fail on the host, and sends it. Returns its task. */
async function failed(resource: string, path: string, body: object): Promise<{ id: string; resource_id: string }> {
  const { yard } = consoleOf;
  const fault = { resource, operation: 'apply', mode: 'fail', message: `no space for this ${resource}` };
  await yard.insist('POST', '/cloudyard/v1/dev/faults', fault);
  const { body: answer } = await yard.insist('POST', path, body);
  return (await yard.get(`/cloud/v1/tasks/${answer.tasks[0]}?wait=30`)).body;
}

describe('the page of a failed resource', () => {
  it.each([
    ['file_share', 'file-shares', '/cloud/v1/file_shares/1/1', { protocol: 'NFS', size: 1 }],
    ['volume', 'volumes', '/cloud/v1/volumes/1/1', { size: 1, source: 'new-volume' }],
    ['snapshot', 'snapshots', '/cloud/v1/snapshots/1/1', {}],
    ['load_balancer', 'load-balancers', '/cloud/v1/loadbalancers/1/1', {}],
  ])('says on every tab why, and links the task: %s', async (resource, pages, path, fields) => {
    const { yard } = consoleOf;
    const body: Record<string, unknown> = { name: 'to-fail', ...fields };
    if (resource === 'file_share')
      body['network'] = { network_id: (await yard.get('/cloud/v1/networks/1/1')).body.results[0].id };
    if (resource === 'snapshot') {
      const volume = { name: 'source', size: 1, source: 'new-volume' };
      const made = await yard.ended(await yard.insist('POST', '/cloud/v1/volumes/1/1', volume));
      body['volume_id'] = made.created_resources.volumes[0];
    }
    const task = await failed(resource, path, body);
    const page = await open(`${pages}/${task.resource_id}`);
    const notice = page.locator('main .notice.bad');
    await notice.getByText(`no space for this ${resource}`).waitFor();
    await checkPage(page);
    await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Audit log' }).click();
    await page.getByRole('table', { name: 'Audit log' }).waitFor();
    await notice.getByRole('link', { name: 'Open the task' }).click();
    await page.getByRole('heading', { name: /^Create /, level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/console/p/1/r/1/tasks/${task.id}`);
  });

  it('says nothing of a failed change that the resource has survived', async () => {
    const { yard } = consoleOf;
    const made = await yard.ended(await yard.insist('POST', '/cloud/v1/loadbalancers/1/1', { name: 'repaired' }));
    const [id] = made.created_resources.loadbalancers;
    const balancer = `/cloud/v1/loadbalancers/1/1/${id}`;
    await failed('load_balancer', `${balancer}/failover`, {});
    const page = await open(`load-balancers/${id}`);
    const notice = page.locator('main .notice.bad');
    await notice.getByText('no space for this load_balancer').waitFor();
    await yard.ended(await yard.insist('POST', `${balancer}/failover`, {}));
    await notice.waitFor({ state: 'detached' });
  });
});

describe('a successful response without a body, as of a faulty proxy', () => {
  const CUT = 'the response of the server is incomplete or not valid; try again';
  const empty = (route: Route) => route.fulfill({ status: 200, contentType: 'application/json', body: '' });

  it('is explained on a page, which recovers by itself', async () => {
    const page = await open('overview');
    await page.route('**/cloud/v1/networks/1/1?*', empty);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Networks' }).click();
    await page.getByRole('heading', { name: 'This could not be loaded' }).waitFor();
    await page.getByText(CUT).waitFor();
    await page.unroute('**/cloud/v1/networks/1/1?*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('table', { name: 'Networks' }).waitFor();
  });

  it.each([
    ['networks/new', 'Name', '**/cloud/v1/networks/1/1', 'Create network'],
    ['secrets/new', 'Name', '**/cloud/v2/secrets/1/1', 'Create secret'],
  ])('is explained in a form, which keeps its text: %s', async (path, label, request, button) => {
    const page = await open(path);
    page.on('dialog', (dialog) => void dialog.accept());
    await page.route(request, empty, { times: 1 });
    await page.getByLabel(label, { exact: true }).fill('typed');
    for (const pem of ['Certificate', 'Private key'])
      if (path.startsWith('secrets')) await page.getByLabel(pem, { exact: true }).fill('-----BEGIN');
    await page.getByRole('dialog').getByRole('button', { name: button }).click();
    await page.locator('.form > .notice.bad').getByText(CUT).waitFor();
    expect(await page.getByLabel(label, { exact: true }).inputValue()).toBe('typed');
  });
});

describe('a page that cannot be loaded', () => {
  const failing = (route: Route) => route.fulfill({ status: 500, json: { message: 'broken' } });

  it.each([
    ['list', 'p/1/r/1/networks', '**/cloud/v1/networks/1/1?*'],
    ['detail page', 'p/1/r/1/networks/<id>', '**/cloud/v1/networks/1/1/*'],
    ['entry', '', '**/cloud/v1/projects?*'],
  ])('says so during further attempts, and keeps the focus: %s', async (_, path, reads) => {
    const { yard } = consoleOf;
    const { id } = (await yard.get('/cloud/v1/networks/1/1')).body.results[0];
    const page = await open('overview');
    await page.route(reads, failing);
    await page.goto(`${yard.url}/console/${path.replace('<id>', id)}`);
    const button = page.getByRole('button', { name: 'Try again' });
    await button.focus();
    const held = Promise.withResolvers<void>();
    await page.unroute(reads, failing);
    await page.route(reads, async (route) => {
      await held.promise;
      await route.continue();
    });
    await button.press('Enter');
    await expect.poll(() => button.getAttribute('aria-disabled')).toBe('true');
    await page.getByRole('alert').getByText('broken').waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Try again');
    held.resolve();
    await page.locator('.frame').getByRole('heading', { level: 1 }).waitFor();
    await button.waitFor({ state: 'detached' });
    if (path !== '') expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });
});

describe('a refused form', () => {
  it('lists in its message only what belongs to no field', async () => {
    const page = await open('networks/new');
    page.on('dialog', (dialog) => void dialog.accept());
    const errors = [
      { path: 'name', message: 'is taken' },
      { path: 'router', message: 'is full' },
    ];
    const message = errors.map((error) => `${error.path}: ${error.message}`).join('; ');
    await page.route('**/cloud/v1/networks/1/1', (route) => route.fulfill({ status: 400, json: { message, errors } }));
    await page.getByLabel('Name', { exact: true }).fill('typed');
    await page.getByRole('dialog').getByRole('button', { name: 'Create network' }).click();
    await page.locator('.field .error').getByText('is taken').waitFor();
    const notice = page.locator('.form > .notice.bad');
    expect((await notice.innerText()).split(/\n+/)).toEqual(['Correct the marked fields', 'router: is full']);
  });
});

describe('the check of an API key', () => {
  it('does not say that the key is refused if the server cannot check it', async () => {
    await consoleOf.yard.insist('POST', '/cloud/v1/caas/keys/1/1', { name: 'unchecked', containers: [] });
    const page = await open('api-keys/unchecked/verify');
    await page.route('**/cloudyard/v1/authorize/**', (route) => route.fulfill({ status: 503, body: '' }));
    for (const label of ['Secret', 'Namespace', 'Container']) await page.getByLabel(label, { exact: true }).fill('x');
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByText('the server or a proxy responded with status 503').waitFor();
  });
});

describe('a revert of a volume', () => {
  it('that failed before it could be followed is not reported as done', async () => {
    const { yard } = consoleOf;
    const made = await yard.ended(
      await yard.insist('POST', '/cloud/v1/volumes/1/1', { name: 'ledger', size: 1, source: 'new-volume' }),
    );
    const [volume_id] = made.created_resources.volumes;
    await yard.ended(await yard.insist('POST', '/cloud/v1/snapshots/1/1', { name: 'newest', volume_id }));
    const fault = { resource: 'volume', operation: 'apply', mode: 'fail', message: 'the disk is gone' };
    await yard.insist('POST', '/cloudyard/v1/dev/faults', fault);
    const page = await open(`volumes/${volume_id}/revert`);
    // The response arrives when the task has ended.
    await page.route('**/revert', async (route) => {
      const response = await route.fetch();
      const filter = `resource_id=${volume_id}&state=ERROR`;
      const ended = async () => (await yard.get(`/cloud/v1/tasks?${filter}`)).body.count;
      await expect.poll(ended, { timeout: 20_000 }).toBe(1);
      await route.fulfill({ response });
    });
    await page.getByLabel('Type ledger to confirm').fill('ledger');
    await page.getByRole('button', { name: 'Revert volume' }).click();
    await page.locator('.toast.bad').getByText('Reverting volume ledger failed').waitFor();
    await page.locator('main .notice.bad').getByText('the disk is gone').waitFor();
  });
});
