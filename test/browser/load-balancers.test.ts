import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

const pool = { name: 'web', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };
const members = [
  { address: '10.1.0.1', protocol_port: 80, monitor_port: 8080 },
  { address: '10.1.0.2', protocol_port: 80, backup: true },
];

interface Balancer {
  readonly id: string;
  readonly listener: string;
  readonly pool: string;
}

/** A load balancer with an HTTP listener, a pool and two members. */
async function newBalancer(name: string, fields: object = {}): Promise<Balancer> {
  const { yard } = consoleOf;
  const listeners = [{ name: 'http', protocol: 'HTTP', protocol_port: 80, pools: [{ ...pool, members }] }];
  const answer = await yard.post('/cloud/v1/loadbalancers/1/1', { name, listeners, ...fields });
  const { created_resources: created } = await yard.ended(answer);
  return { id: created.loadbalancers[0], listener: created.listeners?.[0], pool: created.pools?.[0] };
}

async function get(path: string): Promise<any> {
  return (await consoleOf.yard.get(path)).body;
}

async function named(path: string, name: string): Promise<any> {
  const { results } = await get(path);
  return results.find((each: { name: string }) => each.name === name);
}

const poolOf = (id: string) => get(`/cloud/v1/lbpools/1/1/${id}`);

async function policiesOf(listener: string): Promise<any[]> {
  const { results } = await get('/cloud/v1/l7policies/1/1');
  return results
    .filter((each: { listener_id: string }) => each.listener_id === listener)
    .sort((a: { position: number }, b: { position: number }) => a.position - b.position);
}

async function newPolicy(listener_id: string, name: string): Promise<string> {
  const { yard } = consoleOf;
  const answer = await yard.post('/cloud/v1/l7policies/1/1', { listener_id, name, action: 'REJECT' });
  return (await yard.ended(answer)).created_resources.l7polices[0];
}

describe('the pages of load balancers', () => {
  it('creates a load balancer with a listener, a pool, a monitor and members in one request', async () => {
    const page = await open('load-balancers');
    await page.getByRole('link', { name: 'Create load balancer' }).click();
    await page.getByLabel('Name', { exact: true }).fill('shop');
    await page.getByLabel('Listener name').fill('front');
    await page.getByLabel('Pool name').fill('back');
    await page.getByLabel(/^Check the members/).check();
    await page.getByRole('button', { name: 'Add member' }).click();
    await page.getByLabel('Address 1').fill('10.1.0.9');
    await page.getByLabel('Port 1').fill('8080');
    await page.getByLabel('Weight 1').fill('5');
    await submit(page, 'Create load balancer');
    await page.getByText('Created load balancer shop').waitFor();
    await page.getByRole('cell', { name: 'online' }).waitFor();
    const balancer = await named('/cloud/v1/loadbalancers/1/1', 'shop');
    const { results } = await get(`/cloud/v1/lbpools/1/1?details=true&load_balancer_id=${balancer.id}`);
    expect(results).toMatchObject([
      {
        name: 'back',
        healthmonitor: { type: 'HTTP', delay: 10 },
        members: [{ address: '10.1.0.9', protocol_port: 8080, weight: 5 }],
        listeners: [{}],
      },
    ]);
  });

  it('shows at each field what the API would refuse, and errors of the server, and keeps the text', async () => {
    const page = await open('load-balancers/new');
    await page.getByLabel('Name', { exact: true }).fill('x');
    await page.getByRole('button', { name: 'Add member' }).click();
    await submit(page, 'Create load balancer');
    await page.getByText('row 1, address: is required').waitFor();
    expect(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByLabel('Address 1').getAttribute('aria-invalid')).toBe('true');
    await checkPage(page);
    await page.getByLabel('Name', { exact: true }).fill('refused');
    await page.getByLabel('Address 1').fill('10.1.0.1');
    await page.getByLabel('Listener protocol').selectOption('TERMINATED_HTTPS');
    await submit(page, 'Create load balancer');
    await page.getByText('is required for TERMINATED_HTTPS').first().waitFor();
    expect(await page.getByLabel('Address 1').inputValue()).toBe('10.1.0.1');
    expect(await named('/cloud/v1/loadbalancers/1/1', 'refused')).toBeUndefined();
  });

  it('edits, resizes and deletes a load balancer', async () => {
    const { id } = await newBalancer('draft');
    const page = await open(`load-balancers/${id}`);
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Name', { exact: true }).fill('final');
    await submit(page, 'Save');
    await page.getByRole('heading', { name: 'final' }).waitFor();
    await page.getByRole('link', { name: 'Change flavor' }).click();
    const flavors = page.getByLabel('Flavor', { exact: true });
    const other = await flavors.locator('option:not(:checked)').last().getAttribute('value');
    await flavors.selectOption(other!);
    await submit(page, 'Change flavor');
    await page.getByText(`Changed the flavor of final to ${other}`).waitFor();
    expect(await get(`/cloud/v1/loadbalancers/1/1/${id}`)).toMatchObject({
      name: 'final',
      flavor: { flavor_name: other },
    });
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type final to confirm').fill('final');
    await submit(page, 'Delete load balancer');
    await page.getByText('Deleted load balancer final').waitFor();
    expect(await named('/cloud/v1/loadbalancers/1/1', 'final')).toBeUndefined();
  });

  it('updates all members of a pool at once and keeps their other settings', async () => {
    const { id, pool: poolId } = await newBalancer('members');
    const before = await poolOf(poolId);
    const page = await open(`load-balancers/${id}?tab=pools`);
    await page.getByRole('link', { name: 'Edit members' }).click();
    await page.getByLabel('Weight 1').fill('7');
    await page.getByLabel('Traffic 2').uncheck();
    await page.getByRole('button', { name: 'Add member' }).click();
    await page.getByLabel('Address 3').fill('10.1.0.3');
    const requests: string[] = [];
    page.on('request', (request) => {
      if (request.method() !== 'GET') requests.push(`${request.method()} ${new URL(request.url()).pathname}`);
    });
    await submit(page, 'Save members');
    await page.getByText('Updated the members of web').waitFor();
    expect(requests).toEqual([`PATCH /cloud/v2/lbpools/1/1/${poolId}`]);
    const after = await poolOf(poolId);
    expect(after.members).toMatchObject([
      { id: before.members[0].id, weight: 7, monitor_port: 8080 },
      { id: before.members[1].id, admin_state_up: false, backup: true },
      { address: '10.1.0.3', protocol_port: 80 },
    ]);
    await page.getByRole('cell', { name: 'no: drained' }).waitFor();
  });

  it('warns in an open dialog that the members were changed elsewhere', async () => {
    const { id, pool: poolId } = await newBalancer('elsewhere');
    const page = await open(`load-balancers/${id}/pools/${poolId}/members`);
    await page.getByLabel('Weight 1').fill('9');
    const { yard } = consoleOf;
    await yard.ended(await yard.patch(`/cloud/v2/lbpools/1/1/${poolId}`, { members: members.slice(0, 1) }));
    await page.getByText('The members were changed elsewhere').waitFor();
    expect(await page.getByLabel('Weight 1').inputValue()).toBe('9');
  });
});

describe('the pages of listeners, pools and L7 policies', () => {
  it('creates, edits and deletes a listener', async () => {
    const { id } = await newBalancer('listeners');
    const page = await open(`load-balancers/${id}?tab=listeners`);
    await page.getByRole('link', { name: 'Create listener' }).click();
    await page.getByLabel('Listener name').fill('second');
    await page.getByLabel('Listener port').fill('80');
    await submit(page, 'Create listener');
    await page.getByRole('dialog').getByText(/80/).first().waitFor();
    await page.getByLabel('Listener port').fill('81');
    await submit(page, 'Create listener');
    await page.getByText('Created listener second').waitFor();
    await page.getByRole('link', { name: 'Edit listener second' }).click();
    await page.getByText('Access, limits and timeouts').click();
    await page.getByLabel('Who may connect').selectOption('listed');
    const networks = page.getByRole('group', { name: 'Addresses and networks' });
    for (const [index, network] of ['10.0.0.0/24', '192.0.2.1/32'].entries()) {
      await networks.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByLabel(`Address or network ${index + 1}`).fill(network);
    }
    await page.getByLabel('Client timeout (ms)').fill('1000');
    await submit(page, 'Save');
    await page.getByText('Updated listener second').waitFor();
    const listener = await named(`/cloud/v1/lblisteners/1/1?load_balancer_id=${id}`, 'second');
    expect(listener).toMatchObject({
      allowed_cidrs: ['10.0.0.0/24', '192.0.2.1/32'],
      timeout_client_data: 1000,
      protocol_port: 81,
    });
    await page.getByRole('link', { name: 'Delete listener second' }).click();
    await page.getByLabel('Type second to confirm').fill('second');
    await submit(page, 'Delete listener');
    await page.getByText('Deleted listener second').waitFor();
    expect(page.url()).toContain('tab=listeners');
    expect(await named(`/cloud/v1/lblisteners/1/1?load_balancer_id=${id}`, 'second')).toBeUndefined();
  });

  it('creates, edits and deletes a pool with a monitor and session persistence', async () => {
    const { id } = await newBalancer('pools');
    const page = await open(`load-balancers/${id}?tab=pools`);
    await page.getByRole('link', { name: 'Create pool' }).click();
    await page.getByLabel('Pool name').fill('beta');
    await page.getByLabel(/^Check the members/).check();
    await page.getByLabel('Path').fill('/health');
    await submit(page, 'Create pool');
    await page.getByText('Created pool beta').waitFor();
    await page.getByRole('link', { name: 'Edit pool beta' }).click();
    await page.getByLabel('Algorithm').selectOption('LEAST_CONNECTIONS');
    await page.getByLabel(/^Check the members/).uncheck();
    await page.getByLabel('Session persistence').selectOption('APP_COOKIE');
    await page.getByLabel('Name of the cookie').fill('session-id');
    await submit(page, 'Save');
    await page.getByText('Updated pool beta').waitFor();
    const beta = await named(`/cloud/v1/lbpools/1/1?load_balancer_id=${id}`, 'beta');
    expect(await poolOf(beta.id)).toMatchObject({
      lb_algorithm: 'LEAST_CONNECTIONS',
      healthmonitor: null,
      session_persistence: { type: 'APP_COOKIE', cookie_name: 'session-id' },
    });
    await page.getByRole('link', { name: 'Delete pool beta' }).click();
    await page.getByLabel('Type beta to confirm').fill('beta');
    await submit(page, 'Delete pool');
    await page.getByText('Deleted pool beta').waitFor();
    expect(page.url()).toContain('tab=pools');
    expect(await named(`/cloud/v1/lbpools/1/1?load_balancer_id=${id}`, 'beta')).toBeUndefined();
  });

  it('creates, edits, moves and deletes L7 policies', async () => {
    const { id, listener, pool: poolId } = await newBalancer('policies');
    await newPolicy(listener, 'first');
    const page = await open(`load-balancers/${id}?tab=listeners`);
    await page.getByRole('link', { name: 'Create L7 policy' }).click();
    await page.getByLabel(/^Name/).fill('second');
    await page.getByLabel('Pool').selectOption(poolId);
    await submit(page, 'Create policy');
    await page.getByText('Created the L7 policy').waitFor();
    await page.getByRole('link', { name: 'Move policy second up' }).click();
    await page.getByText('The same by code').click();
    await page.getByText('"position": 1').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click();
    await page.getByText('Moved policy second to position 1').waitFor();
    expect((await policiesOf(listener)).map(({ name }) => name)).toEqual(['second', 'first']);
    await page.getByRole('link', { name: 'Edit policy second' }).click();
    await page.getByLabel('Requests that match all rules').selectOption('REDIRECT_TO_URL');
    await page.getByLabel('URL').fill('https://example.com/');
    await page.getByLabel('Status').selectOption('301');
    await submit(page, 'Save');
    await page.getByText('Updated policy second').waitFor();
    expect((await policiesOf(listener))[0]).toMatchObject({
      action: 'REDIRECT_TO_URL',
      redirect_url: 'https://example.com/',
      redirect_http_code: 301,
      redirect_pool_id: null,
    });
    await page.getByRole('link', { name: 'Delete policy second' }).click();
    await page.getByLabel('Type second to confirm').fill('second');
    await submit(page, 'Delete L7 policy');
    await page.getByText('Deleted L7 policy second').waitFor();
    expect(await policiesOf(listener)).toMatchObject([{ name: 'first', position: 1 }]);
  });

  it('adds, edits and removes a rule', async () => {
    const { id, listener } = await newBalancer('rules');
    const policy = await newPolicy(listener, 'deny');
    const rules = () => get(`/cloud/v1/l7policies/1/1/${policy}/rules`);
    const page = await open(`load-balancers/${id}?tab=listeners`);
    await page.getByRole('link', { name: 'Add rule to policy deny' }).click();
    await page.getByLabel('Compare').selectOption('HEADER');
    await page.getByLabel('How').selectOption('EQUAL_TO');
    await page.getByLabel('With').fill('1');
    await submit(page, 'Add rule');
    await page
      .getByRole('alert')
      .getByText(/required/)
      .first()
      .waitFor();
    await page.getByLabel('Name of the header').fill('X-Beta');
    await submit(page, 'Add rule');
    await page.getByText('Created the rule').waitFor();
    await page.getByRole('link', { name: 'Edit the rule header X-Beta is 1' }).click();
    await page.getByLabel('Match requests that do not').check();
    await submit(page, 'Save');
    await page.getByText('Updated the rule').waitFor();
    expect((await rules()).results).toMatchObject([{ type: 'HEADER', key: 'X-Beta', value: '1', invert: true }]);
    await page.getByRole('link', { name: /^Remove the rule/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('No rules yet').waitFor();
    expect((await rules()).results).toEqual([]);
  });
});

describe('what the pages of load balancers show', () => {
  it('draws the flow and the traffic, and has no accessibility violations, in light and dark', async () => {
    const balancer = await newBalancer('seen', { tags: { team: 'web' } });
    await newPolicy(balancer.listener, 'deny');
    // The traffic of a minute is shown when the minute has ended.
    await consoleOf.yard.post('/cloudyard/v1/dev/clock', { advance_seconds: 120 });
    const page = await open('load-balancers');
    await page.getByRole('link', { name: 'seen' }).waitFor();
    await checkPage(page);
    for (const tab of ['', '?tab=listeners', '?tab=pools', '?tab=traffic', '?tab=tags', '?tab=audit']) {
      await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/load-balancers/${balancer.id}${tab}`);
      await page.getByRole('heading', { name: 'seen' }).waitFor();
      if (tab === '') await page.locator('.flow-box', { hasText: '10.1.0.2' }).waitFor();
      if (tab === '?tab=traffic') {
        await page.getByText('The driver is simulated').waitFor();
        const charts = page.getByRole('img', {
          name: /^(Requests|Bytes|New connections|Open connections|Errors)\b.* last 0/,
        });
        await charts.first().waitFor();
        expect(await charts.count()).toBe(5);
        await page.getByText('Table of values: Open connections').click();
        await page.getByRole('table', { name: 'Open connections' }).getByRole('cell', { name: '0' }).first().waitFor();
      }
      await checkPage(page);
    }
  });

  it('updates the statuses when another client changes something', async () => {
    const { id, pool: poolId } = await newBalancer('live');
    const page = await open(`load-balancers/${id}`);
    await page.locator('.flow-box', { hasText: '10.1.0.2' }).waitFor();
    const { yard } = consoleOf;
    await yard.ended(await yard.patch(`/cloud/v2/lbpools/1/1/${poolId}`, { members: members.slice(0, 1) }));
    await page.locator('.flow-box', { hasText: '10.1.0.2' }).waitFor({ state: 'detached' });
  });

  it.each([360, 1280, 2560])('fits a window of %i px', async (width) => {
    const { id, listener } = await newBalancer(`w${width}`);
    await newPolicy(listener, 'deny');
    const page = await open(`load-balancers/${id}`, { viewport: { width, height: 800 } });
    for (const tab of ['', '?tab=listeners', '?tab=pools', '?tab=traffic']) {
      await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/load-balancers/${id}${tab}`);
      await page.getByRole('heading', { name: `w${width}` }).waitFor();
      if (tab === '?tab=listeners') await page.getByRole('link', { name: 'Add rule' }).waitFor();
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      expect(await page.evaluate(overflow)).toBe(0);
    }
  });
});

/** A certificate with its key, made by OpenSSL; as PEM, and as PKCS#12 without a password. */
function newCertificate(): { certificate: string; key: string; bundle: string } {
  const at = (name: string) => join(consoleOf.yard.folder, name);
  const [key, certificate, bundle] = [at('key.pem'), at('cert.pem'), at('bundle.p12')];
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
  const subject = ['-subj', '/CN=example.com', '-days', '30'];
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-noenc', '-keyout', key, '-out', certificate, ...subject);
  openssl('pkcs12', '-export', '-in', certificate, '-inkey', key, '-passout', 'pass:', '-out', bundle);
  return { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8'), bundle };
}

describe('the pages of secrets', () => {
  it('creates a certificate from PEM that a listener uses, shows its expiry, and deletes it', async () => {
    const { certificate, key } = newCertificate();
    const page = await open('secrets');
    await page.getByRole('link', { name: 'Create secret' }).click();
    await page.getByLabel('Name', { exact: true }).fill('site');
    await page.getByLabel('Certificate', { exact: true }).fill('not a certificate');
    await page.getByLabel('Private key').fill(key);
    await submit(page, 'Create secret');
    await page.getByRole('dialog').getByRole('alert').first().waitFor();
    expect(await page.getByLabel('Private key').inputValue()).toBe(key);
    await page.getByLabel('Certificate', { exact: true }).fill(certificate);
    await page.getByLabel(/^Usable until/).fill('2120-05-04T10:30');
    await submit(page, 'Create secret');
    await page.getByText('Created secret site').waitFor();
    const secret = await named('/cloud/v1/secrets/1/1', 'site');
    expect(secret.expiration).toContain('2120-05-04T10:30:00');
    const listeners = [{ name: 'tls', protocol: 'TERMINATED_HTTPS', protocol_port: 443, secret_id: secret.id }];
    const { id } = await newBalancer('with-tls', { listeners });
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/load-balancers/${id}?tab=listeners`);
    await page.getByRole('link', { name: 'site' }).click();
    await page.getByRole('link', { name: 'tls', exact: true }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type site to confirm').fill('site');
    await submit(page, 'Delete secret');
    await page.getByRole('dialog').getByRole('alert').first().waitFor();
    await consoleOf.yard.ended(await consoleOf.yard.delete(`/cloud/v1/loadbalancers/1/1/${id}`));
    await submit(page, 'Delete secret');
    await page.getByText('Deleted secret site').waitFor();
    expect(await named('/cloud/v1/secrets/1/1', 'site')).toBeUndefined();
  });

  it('creates a certificate from a PKCS#12 file', async () => {
    const { bundle } = newCertificate();
    const page = await open('secrets/new');
    await page.getByLabel('Name', { exact: true }).fill('bundle');
    await page.getByLabel('Source').selectOption('pkcs12');
    await checkPage(page);
    await page.getByLabel('PKCS#12 file').setInputFiles(bundle);
    await submit(page, 'Create secret');
    await page.getByText('Created secret bundle').waitFor();
    expect(await named('/cloud/v1/secrets/1/1', 'bundle')).toMatchObject({ secret_type: 'certificate' });
    await checkPage(page);
  });
});
