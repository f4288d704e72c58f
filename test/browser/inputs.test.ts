/** Input that is wrong, incomplete or not final: the form names it at the field, and loses nothing that was typed. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { loaded, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

const dialog = (page: Page) => page.getByRole('dialog');
const submit = (page: Page, name: string) => dialog(page).getByRole('button', { name, exact: true }).click();

/** A load balancer with a listener and a pool. */
async function newBalancer(name: string): Promise<{ id: string; pool: string }> {
  const { yard } = consoleOf;
  const members = [{ address: '10.1.0.1', protocol_port: 80 }];
  const pools = [{ name: 'web', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members }];
  const listeners = [{ name: 'front', protocol: 'HTTP', protocol_port: 80, pools }];
  const { created_resources: created } = await yard.ended(
    await yard.post('/cloud/v1/loadbalancers/1/1', { name, listeners }),
  );
  return { id: created.loadbalancers[0], pool: created.pools[0] };
}

describe('a number in a table', () => {
  it('is not another number because it has a fraction', async () => {
    const { id, pool } = await newBalancer('weighted');
    const page = await open(`load-balancers/${id}/pools/${pool}/members`);
    const weight = page.getByLabel('Weight 1');
    await weight.fill('');
    await weight.pressSequentially('1.5');
    expect(await weight.inputValue()).toBe('1.5');
    await submit(page, 'Save members');
    await page.getByText('row 1, weight: must be a whole number').waitFor();
    expect(await weight.getAttribute('aria-invalid')).toBe('true');
  });
});

describe('a member that is listed twice', () => {
  it('is marked, and the message counts from 1 like the form', async () => {
    const { id, pool } = await newBalancer('twice');
    const page = await open(`load-balancers/${id}/pools/${pool}/members`);
    await page.getByRole('button', { name: 'Add member' }).click();
    await page.getByLabel('Address 2').fill('10.1.0.1');
    await submit(page, 'Save members');
    await page.getByText('row 2: has the same address and port as member 1').waitFor();
    await page.getByLabel('Address 2').and(page.locator('[aria-invalid=true]:focus')).waitFor();
    expect(await page.locator('[aria-invalid=true]').count()).toBe(2);
  });
});

describe('text that does not match a pattern', () => {
  it('of tags is explained in words at the field', async () => {
    const page = await open('networks/new');
    await page.getByLabel('Name', { exact: true }).fill('tagged');
    await page.getByLabel('Tags').click();
    await page.getByLabel('Key 1').fill('two words');
    await page.getByLabel('Value 1').fill('web');
    await submit(page, 'Create network');
    await page.getByText('two words: the key must be 1 to 255 characters without whitespace').waitFor();
    expect(await page.getByLabel('Key 1').getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('Value 1').inputValue()).toBe('web');
  });

  it.each([
    ['the name of an L7 policy', 'Name', 'é', /3 to 63 letters/],
    ['a label of an L7 policy', 'Label 1', 'a\tb', /without control characters/],
  ])('of %s is explained in words', async (what, label, text, message) => {
    const { id } = await newBalancer(what.startsWith('a') ? 'labelled' : 'named');
    const page = await open(`load-balancers/${id}/l7-policies/new`);
    await page.getByLabel('Requests that match all rules').selectOption('REJECT');
    if (label === 'Label 1') await dialog(page).getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel(label).fill(text);
    await submit(page, 'Create policy');
    await page.getByRole('alert').getByText(message).waitFor();
    expect(await page.getByLabel(label).getAttribute('aria-invalid')).toBe('true');
  });
});

describe('the target of an L7 policy', () => {
  it('is not marked as optional, and its absence is named', async () => {
    const { id } = await newBalancer('targeted');
    const page = await open(`load-balancers/${id}/l7-policies/new`);
    const pool = page.getByLabel('Pool', { exact: true });
    await submit(page, 'Create policy');
    await page.getByText('is required for REDIRECT_TO_POOL').waitFor();
    expect(await pool.getAttribute('aria-invalid')).toBe('true');
    for (const [action, label] of [
      ['REDIRECT_TO_URL', 'URL'],
      ['REDIRECT_PREFIX', 'Prefix'],
    ] as const) {
      await page.getByLabel('Requests that match all rules').selectOption(action);
      await page.getByLabel(label, { exact: true }).waitFor();
    }
  });
});

describe('a field that another one makes required', () => {
  it('is not marked as optional', async () => {
    const { id } = await newBalancer('required');
    const page = await open(`load-balancers/${id}/listeners/new`);
    await page.getByLabel('Listener protocol').selectOption('TERMINATED_HTTPS');
    await page.getByLabel('Certificate', { exact: true }).waitFor();
    await page.getByLabel('Listener protocol').selectOption('PROMETHEUS');
    await page.getByLabel('Certificate (optional)').waitFor();
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/load-balancers/${id}/pools/new`);
    await page.getByLabel('Session persistence').selectOption('APP_COOKIE');
    await page.getByLabel('Name of the cookie', { exact: true }).waitFor();
    await page.getByLabel('Session persistence').selectOption('HTTP_COOKIE');
    await page.getByLabel('Name of the cookie (optional)').waitFor();
  });
});

describe('a choice that hides fields', () => {
  it('keeps the PEM text of a secret', async () => {
    const page = await open('secrets/new');
    const certificate = page.getByLabel('Certificate', { exact: true });
    await certificate.fill('-----BEGIN CERTIFICATE-----');
    for (const source of ['pkcs12', 'other', 'pem']) await page.getByLabel('Source').selectOption(source);
    expect(await certificate.inputValue()).toBe('-----BEGIN CERTIFICATE-----');
  });
});

describe('a tag without a value', () => {
  it.each([
    ['networks', 'Create network'],
    ['load-balancers', 'Create load balancer'],
  ])('is marked in its row in the form of %s', async (list, button) => {
    const page = await open(`${list}/new`);
    await page.getByLabel('Name', { exact: true }).first().fill('valueless');
    for (const [index, value] of ['web', ''].entries()) {
      await page.getByLabel('Add to Tags').click();
      await page.getByLabel(`Key ${index + 1}`).fill(`key-${index + 1}`);
      await page.getByLabel(`Value ${index + 1}`).fill(value);
    }
    await submit(page, button);
    await page.getByText('key-2: must be 1 to 255 characters').waitFor();
    await page.getByLabel('Key 2').and(page.locator('[aria-invalid=true]:focus')).waitFor();
    await page.getByLabel('Value 2').and(page.locator('[aria-invalid=true]')).waitFor();
    expect(await page.locator('[aria-invalid=true]').count()).toBe(2);
  });
});

describe('an empty row of tags', () => {
  it('is not a change of an edit', async () => {
    const { yard } = consoleOf;
    const task = await yard.ended(await yard.post('/cloud/v1/networks/1/1', { name: 'untagged' }));
    const page = await open(`networks/${task.created_resources.networks[0]}/edit`);
    await page.getByLabel('Tags').click();
    await page.getByLabel('Key 1').fill('k');
    await page.getByText('Nothing has changed').waitFor({ state: 'detached' });
    await page.getByLabel('Key 1').fill('');
    await page.getByText('Nothing has changed').waitFor();
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'detached' });
  });
});

describe('a request for limits', () => {
  it('omits no limit that was typed, and offers each quota once', async () => {
    const page = await open('quotas/requests/new');
    await loaded(page);
    await page.getByLabel('Quota 1').selectOption('volume_count');
    await page.getByLabel('New limit 1', { exact: true }).fill('9000');
    await dialog(page).getByRole('button', { name: 'Add', exact: true }).click();
    expect(await page.getByLabel('Quota 2').locator('option[value=volume_count]').count()).toBe(0);
    await page.getByLabel('New limit 2', { exact: true }).fill('50');
    await page.getByText('Choose a quota for each limit').waitFor();
    await page.getByLabel('Quota 2').selectOption('network_count');
    await page.getByLabel('Why').fill('We grow');
    await submit(page, 'Send request');
    await page.getByText('The request was sent to the operator').waitFor();
    const [request] = (await consoleOf.yard.get('/cloud/v2/limits_request')).body.results;
    expect(request.requested_limits.regional_limits).toEqual([
      { region_id: 1, volume_count_limit: 9000, network_count_limit: 50 },
    ]);
  });
});

describe('the flavor of a new load balancer', () => {
  // Terraform plans to remove a flavor that its configuration does not name, and cannot.
  it('is in the request and in its code, although it was not changed', async () => {
    const page = await open('load-balancers/new');
    const flavor = page.getByLabel(/^Flavor/);
    await page.getByLabel('Name', { exact: true }).fill('flavored');
    await page.getByText('a month').waitFor();
    const shown = await flavor.inputValue();
    await page.getByText('The same by code').click();
    await page.getByRole('tab', { name: 'Terraform' }).click();
    const code = await page.getByRole('tabpanel', { name: 'Terraform' }).innerText();
    expect(code).toMatch(new RegExp(`flavor += "${shown}"`));
  });
});

describe('a new pool of a listener', () => {
  // Terraform replaces a pool whose configuration does not name the load balancer.
  it('names the load balancer, too', async () => {
    const { yard } = consoleOf;
    const listeners = [{ name: 'free', protocol: 'HTTP', protocol_port: 80 }];
    const made = await yard.ended(await yard.post('/cloud/v1/loadbalancers/1/1', { name: 'pooled', listeners }));
    const [balancer, listener] = [made.created_resources.loadbalancers[0], made.created_resources.listeners[0]];
    const page = await open(`load-balancers/${balancer}/pools/new`);
    await page.getByLabel(/^Listener/).selectOption(listener);
    await page.getByLabel('Pool name').fill('chosen');
    await page.getByText('The same by code').click();
    await page.getByRole('tab', { name: 'Terraform' }).click();
    const code = await page.getByRole('tabpanel', { name: 'Terraform' }).innerText();
    expect(code).toContain(`loadbalancer_id = "${balancer}"`);
    expect(code).toContain(`listener_id     = "${listener}"`);
    await submit(page, 'Create pool');
    await page.getByText('Created pool chosen').waitFor();
  });
});
