/** What forms send and show when a choice hides fields, when a value is missing, and when another client changes the same resource. */
import type { Page, Route } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, loaded, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const policies = '/cloud/v1/lifecycle_policy/1/1';
const balancers = '/cloud/v1/loadbalancers/1/1';

const submit = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click();

async function newPolicy(name: string): Promise<any> {
  const schedules = [{ type: 'cron', hour: '3', max_quantity: 2 }];
  return (await consoleOf.yard.post(policies, { action: 'volume_snapshot', name, schedules })).body;
}

/** A load balancer with a listener of this protocol and its pool. */
async function newBalancer(name: string, protocol: string, pool: object = {}): Promise<Record<string, string>> {
  const { yard } = consoleOf;
  const pools = [{ name: 'web', protocol, lb_algorithm: 'ROUND_ROBIN', ...pool }];
  const listeners = [{ name: 'front', protocol, protocol_port: 80, pools }];
  const { created_resources: created } = await yard.ended(await yard.post(balancers, { name, listeners }));
  return { id: created.loadbalancers[0], listener: created.listeners[0], pool: created.pools[0] };
}

const poolOf = async (id: string) => (await consoleOf.yard.get(`/cloud/v1/lbpools/1/1/${id}`)).body;

describe('a form whose choice hides fields', () => {
  it('sends a health monitor of another type without the fields of the old one', async () => {
    const healthmonitor = { type: 'HTTP', url_path: '/health', delay: 10, timeout: 5, max_retries: 2 };
    const { id, pool } = await newBalancer('checked', 'HTTP', { healthmonitor });
    const page = await open(`load-balancers/${id}/pools/${pool}/edit`);
    await page.getByLabel('Check', { exact: true }).selectOption('TCP');
    await submit(page, 'Save');
    await page.getByText('Updated pool web').waitFor();
    expect((await poolOf(pool!)).healthmonitor).toMatchObject({ type: 'TCP', url_path: null, delay: 10 });
  });

  it('renames a pool without a change of its health monitor', async () => {
    const healthmonitor = { type: 'K8S', url_path: '/ready', delay: 10, timeout: 5, max_retries: 2 };
    const { id, pool } = await newBalancer('nodes', 'HTTP', { healthmonitor });
    const page = await open(`load-balancers/${id}/pools/${pool}/edit`);
    await page.getByLabel('Pool name').fill('renamed');
    await submit(page, 'Save');
    await page.getByText('Updated pool web').waitFor();
    expect(await poolOf(pool!)).toMatchObject({ name: 'renamed', healthmonitor });
  });

  it('sends a listener of another protocol without the fields of the old one', async () => {
    const page = await open('load-balancers/new');
    await page.getByLabel('Name', { exact: true }).fill('switched');
    await page.getByLabel('Send X-Forwarded headers to the members').check();
    await page.getByLabel('Listener protocol').selectOption('TCP');
    await submit(page, 'Create load balancer');
    await page.getByText('Created load balancer switched').waitFor();
  });

  it('sends an L7 rule of another type without the key of the old one', async () => {
    const { yard } = consoleOf;
    const { id, listener } = await newBalancer('ruled', 'HTTP');
    const answer = await yard.post('/cloud/v1/l7policies/1/1', {
      listener_id: listener,
      name: 'deny',
      action: 'REJECT',
    });
    const policy = (await yard.ended(answer)).created_resources.l7polices[0];
    const page = await open(`load-balancers/${id}/l7-policies/${policy}/rules/new`);
    await page.getByLabel('Compare').selectOption('HEADER');
    await page.getByLabel('Name of the header').fill('X-Beta');
    await page.getByLabel('Compare').selectOption('PATH');
    await page.getByLabel('With').fill('/beta');
    await submit(page, 'Add rule');
    await page.getByText('Created the rule').waitFor();
  });

  it('offers the fields of requests only for health monitors that send HTTP requests', async () => {
    const { id } = await newBalancer('monitored', 'HTTP');
    const page = await open(`load-balancers/${id}/pools/new`);
    await page.getByLabel(/^Check the members/).check();
    await page.getByLabel('Statuses of a healthy member').waitFor();
    await page.getByLabel('Check', { exact: true }).selectOption('TCP');
    await page.getByLabel('Statuses of a healthy member').waitFor({ state: 'detached' });
    await page.getByLabel('Check', { exact: true }).selectOption('K8S');
    await page.getByLabel('Statuses of a healthy member').waitFor();
  });
});

describe('a load balancer whose change failed', () => {
  it('is repaired', async () => {
    const { yard } = consoleOf;
    const { id } = await newBalancer('broken', 'HTTP');
    const fault = { resource: 'load_balancer', operation: 'apply', mode: 'fail', count: 1 };
    await yard.post('/cloudyard/v1/dev/faults', fault);
    await yard.insist('PATCH', `/cloud/v2/loadbalancers/1/1/${id}`, { admin_state_up: false });
    const page = await open(`load-balancers/${id}`);
    await page.getByRole('link', { name: 'Repair' }).click();
    await submit(page, 'Repair');
    await page.getByText('Repaired load balancer broken').waitFor();
    await page.getByRole('link', { name: 'Repair' }).waitFor({ state: 'detached' });
  });
});

describe('the members of a pool with a health monitor', () => {
  it('have an address and a port of the checks', async () => {
    const { id } = await newBalancer('apart', 'HTTP');
    const page = await open(`load-balancers/${id}/pools/new`);
    await page.getByLabel('Pool name').fill('checked');
    await page.getByRole('button', { name: 'Add member' }).click();
    await page.getByLabel('Address 1').fill('10.1.0.1');
    expect(await page.getByLabel('Check port of member 1').count()).toBe(0);
    await page.getByLabel(/^Check the members/).check();
    await page.getByLabel('Check address of member 1').fill('nowhere');
    await page.getByLabel('Check port of member 1').fill('8081');
    await submit(page, 'Create pool');
    await page.locator('[aria-label="Check address of member 1"][aria-invalid=true]').waitFor();
    await checkPage(page);
    await page.getByLabel('Check address of member 1').fill('10.1.0.2');
    await submit(page, 'Create pool');
    await page.getByRole('cell', { name: '10.1.0.2 8081' }).waitFor();
  });
});

describe('the members of a pool whose health monitor is switched off again', () => {
  it('are sent without the address and port of the checks', async () => {
    const { id } = await newBalancer('unchecked', 'HTTP');
    const page = await open(`load-balancers/${id}/pools/new`);
    await page.getByLabel('Pool name').fill('unchecked');
    await page.getByRole('button', { name: 'Add member' }).click();
    await page.getByLabel('Address 1').fill('10.1.0.3');
    await page.getByLabel(/^Check the members/).check();
    await page.getByLabel('Check address of member 1').fill('nowhere');
    await page.getByLabel(/^Check the members/).uncheck();
    await submit(page, 'Create pool');
    await page.getByText('Created pool unchecked').waitFor();
  });
});

describe('a select', () => {
  it('shows a value that another choice has made invalid', async () => {
    const { id } = await newBalancer('passed', 'HTTPS');
    const { yard } = consoleOf;
    const listener = { name: 'second', protocol: 'HTTPS', protocol_port: 444, load_balancer_id: id };
    await yard.ended(await yard.post('/cloud/v1/lblisteners/1/1', listener));
    const page = await open(`load-balancers/${id}/pools/new`);
    await page.getByLabel('Pool name').fill('behind');
    const listeners = page.getByRole('dialog').getByRole('combobox', { name: /^Listener/ });
    await listeners.selectOption({ label: 'second (HTTPS 444)' });
    expect(await page.getByLabel('Pool protocol').inputValue()).toBe('HTTP');
    await submit(page, 'Create pool');
    await page.getByText(/^must be .* behind HTTPS listeners$/).waitFor();
    await page.getByLabel('Pool protocol').selectOption('HTTPS');
    await submit(page, 'Create pool');
    await page.getByText('Created pool behind').waitFor();
  });

  it('of an edit offers no empty choice for a field that cannot be emptied', async () => {
    const { id, pool } = await newBalancer('chosen', 'HTTP');
    const page = await open(`load-balancers/${id}/pools/${pool}/edit`);
    const choices = page.getByLabel('Algorithm').locator('option');
    await expect.poll(() => choices.count()).toBe(3);
    expect(await choices.allInnerTexts()).not.toContain('Default');
  });
});

describe('a form without a value', () => {
  it('shows an error of a whole schedule', async () => {
    const page = await open('lifecycle-policies/new');
    await page.getByLabel('Name', { exact: true }).fill('no interval');
    await page.getByLabel('Runs', { exact: true }).selectOption('interval');
    const reason = 'an interval needs at least one of';
    // They move the button when they change, and a button that moves between press and release gets no click.
    for (const name of ['Next runs', 'Maximum usage'])
      await page.getByRole('status', { name }).getByText(reason).waitFor();
    await submit(page, 'Create lifecycle policy');
    await page.locator('.form > .notice.bad').getByText(reason).waitFor();
  });

  it('marks the emptied name of a policy, which keeps its name', async () => {
    const { id } = await newPolicy('kept name');
    const page = await open(`lifecycle-policies/${id}/edit`);
    await page.getByLabel('Name', { exact: true }).fill('');
    await submit(page, 'Save');
    await page.locator('[aria-invalid=true]').waitFor();
    expect((await consoleOf.yard.get(`${policies}/${id}`)).body.name).toBe('kept name');
  });

  it('does not reset an emptied threshold or storage limit to its default', async () => {
    const { yard } = consoleOf;
    const threshold = '/cloud/v2/client_quotas/1/notification_threshold';
    await yard.insist('PUT', threshold, { threshold: 55 });
    const { body } = await yard.post('/cloud/v1/registries/1/1', { name: 'images', storage_limit: 7 });
    const page = await open('quotas/threshold');
    await page.getByLabel('Percent of a quota').fill('');
    await submit(page, 'Save');
    await page.locator('[aria-invalid=true]').waitFor();
    await page.goto(`${yard.url}/console/p/1/r/1/registries/${body.id}/resize`);
    await page.getByLabel('Storage limit (GiB)').fill('');
    await submit(page, 'Resize');
    await page.locator('[aria-invalid=true]').waitFor();
    expect((await yard.get(threshold)).body.threshold).toBe(55);
    expect((await yard.get(`/cloud/v1/registries/1/1/${body.id}`)).body.storage_limit).toBe(7);
  });

  it('opens the part of the form that has the error', async () => {
    const { id, pool } = await newBalancer('folded', 'HTTP');
    const page = await open(`load-balancers/${id}/pools/${pool}/edit`);
    await page.getByText('Timeouts', { exact: true }).click();
    await page.getByLabel('Client timeout (ms)').fill('-1');
    await page.getByText('Timeouts', { exact: true }).click();
    await submit(page, 'Save');
    await page.getByLabel('Client timeout (ms)').and(page.locator(':focus')).waitFor();
  });

  it('is not sent with a date that is not complete', async () => {
    const page = await open('tokens/new');
    await page.getByLabel('Name', { exact: true }).fill('never-without-end');
    const expires = page.getByLabel('Expires');
    // The first part of the date.
    await expires.click();
    await expires.pressSequentially('12');
    await submit(page, 'Create token');
    await expires.and(page.locator(':focus')).waitFor();
    await loaded(page);
    const { results } = (await consoleOf.yard.get('/cloudyard/v1/tokens')).body;
    expect(results.map(({ name }: { name: string }) => name)).not.toContain('never-without-end');
  });
});

describe('a form with a number that is not complete', () => {
  it('shows it in the part of the form that was folded', async () => {
    const { id, pool } = await newBalancer('half', 'HTTP');
    const page = await open(`load-balancers/${id}/pools/${pool}/edit`);
    const timeout = page.getByLabel('Client timeout (ms)');
    await page.getByLabel('Pool name').fill('not sent');
    await page.getByText('Timeouts', { exact: true }).click();
    await timeout.pressSequentially('1e');
    await page.getByText('Timeouts', { exact: true }).click();
    await submit(page, 'Save');
    await timeout.and(page.locator(':focus')).waitFor();
    expect((await poolOf(pool!)).name).toBe('web');
  });
});

describe('a file of a form', () => {
  it('is not read if it is larger than a secret', async () => {
    const page = await open('secrets/new');
    await page.getByLabel('Source').selectOption('pkcs12');
    const file = { name: 'disk.img', mimeType: 'application/octet-stream', buffer: Buffer.alloc(1024 ** 2) };
    await page.getByLabel('PKCS#12 file').setInputFiles(file);
    await page.getByText(/^must have at most .+, but has 1 MiB$/).waitFor();
  });
});

describe('an edit', () => {
  /** Another client changes the resource while the dialog is open; the page has the change before the form is sent. */
  const changedElsewhere = async (page: Page, path: string, body: object) => {
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    const read = page.waitForResponse(
      (response) => response.request().method() === 'GET' && response.url().includes(path),
    );
    await consoleOf.yard.insist('PATCH', path, body);
    await (await read).finished();
  };

  it('of a schedule keeps what another client has changed', async () => {
    const { id, schedules } = await newPolicy('shared');
    const page = await open(`lifecycle-policies/${id}/schedules/${schedules[0].id}`);
    await page.getByLabel('Snapshots to keep of each volume').fill('9');
    await page.getByText('live', { exact: true }).waitFor({ state: 'attached' });
    await consoleOf.yard.insist('PATCH', `/cloud/v1/schedule/1/1/${schedules[0].id}`, { hour: '5' });
    await page.locator('main').getByText('hour=5').waitFor();
    await submit(page, 'Save');
    await page.getByText('Changed a schedule of shared').waitFor();
    const [schedule] = (await consoleOf.yard.get(`${policies}/${id}`)).body.schedules;
    expect(schedule).toMatchObject({ hour: '5', max_quantity: 9 });
  });

  it('of an API key keeps what another client has changed', async () => {
    const key = '/cloud/v1/caas/keys/1/1/shared';
    await consoleOf.yard.post('/cloud/v1/caas/keys/1/1', { name: 'shared', containers: [], description: 'old' });
    const page = await open('api-keys/shared/edit');
    await page.getByLabel('Expires').fill('2040-01-02T12:04');
    await changedElsewhere(page, key, { description: 'new' });
    await submit(page, 'Save');
    await page.getByText('Changed API key shared').waitFor();
    const { body } = await consoleOf.yard.get(key);
    expect(body).toMatchObject({ description: 'new', expire: expect.stringMatching(/^2040/) });
  });

  it('of a pull secret keeps what another client has changed', async () => {
    const secret = '/cloud/v1/caas/secrets/1/1/shared';
    const fields = { registry: 'r.example', login: 'old', password: 'secret' };
    await consoleOf.yard.post('/cloud/v1/caas/secrets/1/1', { name: 'shared', ...fields });
    const page = await open('pull-secrets/shared/edit');
    await page.getByLabel('Registry').fill('other.example');
    await changedElsewhere(page, secret, { login: 'new' });
    await submit(page, 'Save');
    await page.getByText('Changed pull secret shared').waitFor();
    expect((await consoleOf.yard.get(secret)).body).toMatchObject({ registry: 'other.example', login: 'new' });
  });
});

describe('a form without a response', () => {
  /** A form whose next requests meet these faults, one each; a create has no query. */
  const newNetwork = async (name: string, ...faults: ((route: Route) => Promise<void>)[]) => {
    const page = await open('networks/new');
    page.on('dialog', (dialog) => void dialog.accept());
    for (const fault of faults.toReversed()) await page.route('**/cloud/v1/networks/1/1', fault, { times: 1 });
    await page.getByLabel('Name', { exact: true }).fill(name);
    return page;
  };
  const create = (page: Page) => submit(page, 'Create network');
  const failed = (page: Page) => page.locator('.form > .notice.bad').waitFor();
  const named = async (name: string): Promise<{ id: string }[]> => {
    const { results } = (await consoleOf.yard.get('/cloud/v1/networks/1/1')).body;
    return results.filter((network: { name: string }) => network.name === name);
  };

  const lost = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  const timedOut = async (route: Route) => {
    await route.fetch();
    await route.fulfill({ status: 504 });
  };
  const cutShort = async (route: Route) => {
    const response = await route.fetch();
    await route.fulfill({ status: response.status(), contentType: 'application/json', body: '{"tasks": [' });
  };
  const refused = (route: Route) => route.fulfill({ status: 429, json: { message: 'too many requests' } });

  it.each([
    ['lost', [lost]],
    ['cut short', [cutShort]],
    ['lost, and then refused', [lost, refused]],
  ])('creates one resource when it is sent again: %s', async (fault, faults) => {
    const name = `once ${fault.replace(',', '')}`;
    const page = await newNetwork(name, ...faults);
    for (const _ of faults) {
      await create(page);
      await failed(page);
    }
    await create(page);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await named(name)).toHaveLength(1);
  });

  it('says so in words if a proxy or a network responds in its place', async () => {
    const portal = (route: Route) => route.fulfill({ contentType: 'text/html', body: '<h1>Log in</h1>' });
    const page = await newNetwork('behind a portal', portal, cutShort);
    for (const _ of [portal, cutShort]) {
      await create(page);
      await page.getByText('the response of the server is incomplete or not valid; try again').waitFor();
      await page
        .getByRole('dialog')
        .getByRole('button', { name: 'Create network' })
        .and(page.locator('[aria-disabled=false]'))
        .waitFor();
    }
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('behind a portal');
    // A request by path, as dialogs of actions send it.
    await page.route('**/tasks/acknowledge_all*', portal, { times: 1 });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/tasks/acknowledge`);
    await submit(page, 'Acknowledge all');
    await page.getByText('the response of the server is incomplete or not valid; try again').waitFor();
  });

  it('creates another resource when it is opened again', async () => {
    const page = await newNetwork('again', timedOut);
    await create(page);
    await failed(page);
    const [first] = await named('again');
    await consoleOf.yard.ended(await consoleOf.yard.delete(`/cloud/v1/networks/1/1/${first!.id}`));
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Create network' }).click();
    await page.getByLabel('Name', { exact: true }).fill('again');
    await create(page);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await named('again')).toHaveLength(1);
  });
});
