/**
 * Fills and sends forms with the keyboard alone: Tab from the first field to the button that sends, with text, options and
 * marks on the way. A control that Tab does not reach fails here.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loaded, useConsole } from './console.ts';

const consoleOf = useConsole({
  CLOUDYARD_WEBHOOK_ALLOW_PRIVATE: '1',
  CLOUDYARD_REGISTRY_DRIVER: 'simulated',
  CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated',
  CLOUDYARD_VOLUME_DRIVER: 'simulated',
});
const LOOP_MS = 300_000;
const TIMEOUT_MS = 5000;
/** More than the controls of the longest form. */
const MAX_TABS = 90;

/** The label of a control, and what is typed there: text, the label of an option, `space` to mark it or `enter` to press it. */
type Fields = Readonly<Record<string, string>>;
/** Path below the project and region, the button that sends, and the fields. */
type Form = readonly [path: string, submit: string, fields: Fields];

const receiver = createServer((_, response) => response.end());
const ids: Record<string, string> = {};

/** Resources that the forms below edit, one after another. */
beforeAll(async () => {
  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening));
  ids['receiver'] = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const { yard } = consoleOf;
  const created = async (path: string, body: object, kind: string) =>
    (await yard.ended(await yard.post(path, body))).created_resources[kind][0] as string;
  ids['network'] = await created('/cloud/v1/networks/1/1', { name: 'network' }, 'networks');
  const subnet = { name: 'subnet', network_id: ids['network'], cidr: '10.9.0.0/24' };
  ids['subnet'] = await created('/cloud/v1/subnets/1/1', subnet, 'subnets');
  const share = { name: 'share', protocol: 'NFS', size: 1, network: { network_id: ids['network'] } };
  ids['share'] = await created('/cloud/v1/file_shares/1/1', share, 'file_shares');
  ids['volume'] = await created('/cloud/v1/volumes/1/1', { name: 'volume', size: 1, source: 'new-volume' }, 'volumes');
  const snapshot = { name: 'snapshot', volume_id: ids['volume'] };
  ids['snapshot'] = await created('/cloud/v1/snapshots/1/1', snapshot, 'snapshots');
  const pool = {
    name: 'web',
    protocol: 'HTTP',
    lb_algorithm: 'ROUND_ROBIN',
    members: [{ address: '10.1.0.1', protocol_port: 80 }],
  };
  const listeners = [{ name: 'http', protocol: 'HTTP', protocol_port: 80, pools: [pool] }];
  const balancer = await yard.ended(await yard.post('/cloud/v1/loadbalancers/1/1', { name: 'balancer', listeners }));
  ids['balancer'] = balancer.created_resources.loadbalancers[0];
  ids['listener'] = balancer.created_resources.listeners[0];
  ids['pool'] = balancer.created_resources.pools[0];
  const l7 = { listener_id: ids['listener'], name: 'deny', action: 'REJECT' };
  ids['l7'] = await created('/cloud/v1/l7policies/1/1', l7, 'l7polices');
  const rule = { type: 'PATH', compare_type: 'STARTS_WITH', value: '/a' };
  ids['rule'] = await created(`/cloud/v1/l7policies/1/1/${ids['l7']}/rules`, rule, 'l7rules');
  const schedules = [{ type: 'interval', hours: 1, max_quantity: 2 }];
  const policy = { action: 'volume_snapshot', name: 'policy', schedules };
  const { body: made } = await yard.post('/cloud/v1/lifecycle_policy/1/1', policy);
  ids['policy'] = made.id;
  ids['schedule'] = made.schedules[0].id;
  ids['registry'] = (await yard.post('/cloud/v1/registries/1/1', { name: 'images' })).body.id;
  ids['user'] = (
    await yard.post(`/cloud/v1/registries/1/1/${ids['registry']}/users`, { name: 'ci', duration: 9 })
  ).body.id;
  await yard.post('/cloud/v1/caas/keys/1/1', { name: 'key', containers: [] });
  const secret = { name: 'hub', registry: 'hub.example', login: 'me', password: 'secret' };
  await yard.post('/cloud/v1/caas/secrets/1/1', secret);
  const hook = { url: `http://${ids['receiver']}/hook` };
  ids['webhook'] = (await yard.post('/cloudyard/v1/clients/1/webhooks', hook)).body.id;
  const limits = { description: 'more', requested_limits: { global_limits: { project_count_limit: 50 } } };
  for (const _ of ['request', 'refused']) await yard.post('/cloud/v2/limits_request', limits);
  const requests = (await yard.get('/cloud/v2/limits_request')).body.results;
  [ids['request'], ids['refused']] = requests.map(({ id }: { id: number }) => String(id));
  createCertificate();
}, LOOP_MS);

function createCertificate(): void {
  const { folder } = consoleOf.yard;
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-noenc', '-subj', '/CN=example.com'];
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  ids['certificate'] = readFileSync(certificate, 'utf8');
  ids['key'] = readFileSync(key, 'utf8');
}

afterAll(() => receiver.close());

const forms = (): readonly Form[] => [
  [
    'file-shares/new',
    'Create file share',
    { Name: 'typed', 'Size (GiB)': '2', Add: 'enter', 'Address or network 1': '10.0.0.1' },
  ],
  [`file-shares/${ids['share']}/edit`, 'Save', { Name: 'renamed' }],
  [`file-shares/${ids['share']}/extend`, 'Extend', { 'New size (GiB)': '2' }],
  [
    `file-shares/${ids['share']}/access-rules/new`,
    'Add access rule',
    { 'Address or network': '10.0.0.1', Access: 'read only' },
  ],
  ['volumes/new', 'Create volume', { Name: 'typed', 'Size (GiB)': '2' }],
  [`volumes/${ids['volume']}/edit`, 'Save', { Name: 'renamed' }],
  [`volumes/${ids['volume']}/extend`, 'Extend', { 'New size (GiB)': '2' }],
  [`volumes/${ids['volume']}/retype`, 'Change type', { 'New type': 'ssd' }],
  ['snapshots/new', 'Create snapshot', { Volume: 'renamed', Name: 'typed' }],
  [`snapshots/${ids['snapshot']}/edit`, 'Save', { Name: 'renamed' }],
  ['lifecycle-policies/new', 'Create lifecycle policy', { Name: 'typed' }],
  [`lifecycle-policies/${ids['policy']}/edit`, 'Save', { Name: 'renamed' }],
  [`lifecycle-policies/${ids['policy']}/schedules/new`, 'Add schedule', { Runs: 'At a fixed interval', Hours: '6' }],
  [
    `lifecycle-policies/${ids['policy']}/schedules/${ids['schedule']}`,
    'Save',
    { 'Snapshots to keep of each volume': '3' },
  ],
  [`lifecycle-policies/${ids['policy']}/volumes/add`, 'Add volumes', { 'renamed 2 GiB': 'space' }],
  ['load-balancers/new', 'Create load balancer', { Name: 'typed', 'Listener name': 'front', 'Listener port': '81' }],
  [`load-balancers/${ids['balancer']}/edit`, 'Save', { Name: 'renamed' }],
  [`load-balancers/${ids['balancer']}/resize`, 'Change flavor', { Flavor: 'lb1-2-4' }],
  [
    `load-balancers/${ids['balancer']}/listeners/new`,
    'Create listener',
    { 'Listener name': 'typed', 'Listener port': '82' },
  ],
  [`load-balancers/${ids['balancer']}/listeners/${ids['listener']}/edit`, 'Save', { 'Listener name': 'renamed' }],
  [`load-balancers/${ids['balancer']}/pools/new`, 'Create pool', { 'Pool name': 'typed' }],
  [`load-balancers/${ids['balancer']}/pools/${ids['pool']}/edit`, 'Save', { 'Pool name': 'renamed' }],
  [
    `load-balancers/${ids['balancer']}/pools/${ids['pool']}/members`,
    'Save members',
    { 'Weight 1': '7', 'Add member': 'enter', 'Address 2': '10.1.0.2' },
  ],
  [`load-balancers/${ids['balancer']}/l7-policies/new`, 'Create policy', { Name: 'typed', Pool: 'renamed' }],
  [`load-balancers/${ids['balancer']}/l7-policies/${ids['l7']}/edit`, 'Save', { Name: 'renamed' }],
  [`load-balancers/${ids['balancer']}/l7-policies/${ids['l7']}/rules/new`, 'Add rule', { With: '/b' }],
  [`load-balancers/${ids['balancer']}/l7-policies/${ids['l7']}/rules/${ids['rule']}/edit`, 'Save', { With: '/c' }],
  ['networks/new', 'Create network', { Name: 'typed' }],
  [`networks/${ids['network']}/edit`, 'Save', { Name: 'renamed' }],
  ['subnets/new', 'Create subnet', { Name: 'typed', Network: 'renamed', 'Address range': '10.10.0.0/24' }],
  [`subnets/${ids['subnet']}/edit`, 'Save', { Name: 'renamed' }],
  ['secrets/new', 'Create secret', { Name: 'typed', Certificate: ids['certificate']!, 'Private key': ids['key']! }],
  ['registries/new', 'Create registry', { Name: 'typed' }],
  [`registries/${ids['registry']}/resize`, 'Resize', { 'Storage limit (GiB)': '20' }],
  [`registries/${ids['registry']}/users/new`, 'Create user', { Name: 'typed' }],
  [`registries/${ids['registry']}/users/${ids['user']}/edit`, 'Save', { 'The user can only pull': 'space' }],
  ['api-keys/new', 'Create API key', { Name: 'typed', 'Namespace 1': 'default', 'Container 1': 'web' }],
  ['api-keys/key/edit', 'Save', { Description: 'typed' }],
  ['pull-secrets/new', 'Create pull secret', { Name: 'typed', Registry: 'r.example', Login: 'me', Password: 'secret' }],
  ['pull-secrets/hub/edit', 'Save', { Login: 'other' }],
  ['quotas/threshold', 'Save', { 'Percent of a quota': '66' }],
  ['quotas/requests/new', 'Send request', { 'Quota 1': 'Volumes', 'New limit 1': '2000', Why: 'We grow' }],
  [`quotas/requests/${ids['request']}/approve`, 'Approve', { Reason: 'granted' }],
  [`quotas/requests/${ids['refused']}/decline`, 'Decline', { Reason: 'too many' }],
  ['webhooks/new', 'Create webhook', { URL: `http://${ids['receiver']}/other` }],
  [`webhooks/${ids['webhook']}/edit`, 'Save', { URL: `http://${ids['receiver']}/changed` }],
  [`webhooks/${ids['webhook']}/new-secret`, 'Replace secret', { Secret: 'a secret that is typed' }],
  ['webhooks/addresses', 'Save', { Add: 'enter', 'Address 1': 'ops@example.com' }],
  [
    'user-actions/subscribe',
    'Subscribe',
    { URL: `http://${ids['receiver']}/actions`, 'Value of the header': 'secret' },
  ],
  ['tokens/new', 'Create token', { Name: 'typed', Role: 'reader' }],
  ['projects/new', 'Create project', { Name: 'typed' }],
  ['projects/1/edit', 'Save', { Description: 'typed' }],
  ['clients/new', 'Create client', { Name: 'typed' }],
  ['clients/1/edit', 'Save', { Name: 'renamed' }],
  ['development/faults/new', 'Inject fault', { Message: 'typed' }],
  [`networks/${ids['network']}/subnets/new`, 'Create subnet', { Name: 'another', 'Address range': '10.11.0.0/24' }],
  [`file-shares/${ids['share']}/delete`, 'Delete file share', { 'Type renamed to confirm': 'renamed' }],
];

/** Without the mark of an optional field. */
const LABEL =
  '(() => { const e = document.activeElement;' +
  ' const text = e.labels?.[0]?.innerText ?? e.getAttribute("aria-label") ?? e.innerText;' +
  ' return text.replace("(optional)", "").replace(/\\s+/g, " ").trim() })()';
const IS_SELECT = 'document.activeElement instanceof HTMLSelectElement';

async function type(page: Page, text: string): Promise<void> {
  if (text === 'space') return page.keyboard.press('Space');
  if (text === 'enter') return page.keyboard.press('Enter');
  if (!(await page.evaluate(IS_SELECT))) await page.keyboard.press('Control+A');
  // Long text is pasted.
  await (text.includes('\n') ? page.keyboard.insertText(text) : page.keyboard.type(text));
}

/** Tabs through the dialog, fills the fields, and presses the button that sends. Returns the labels in the order of Tab. */
async function walk(page: Page, submit: string, fields: Fields): Promise<string[]> {
  const missing = new Map(Object.entries(fields));
  const labels: string[] = [];
  while (labels.length < MAX_TABS) {
    const label = await page.evaluate<string>(LABEL);
    labels.push(label);
    const text = missing.get(label);
    if (text !== undefined) {
      missing.delete(label);
      await type(page, text);
      // The focus moves to a row that is added.
      if (text === 'enter') continue;
    }
    if (label === submit && missing.size === 0) {
      await page.locator('button[type=submit]:focus:not([aria-disabled=true])').waitFor();
      await page.keyboard.press('Enter');
      return labels;
    }
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not reach ${[...missing.keys(), submit].join(', ')}: ${labels.join(' | ')}`);
}

/** Prices and previews are requests with a body, too. */
const isChange = (method: string, url: string) => method !== 'GET' && !/pricing|preview|estimate/.test(url);

/** Why the form could not be sent, or null. */
async function send(page: Page, [path, submit, fields]: Form): Promise<string | null> {
  const button = page.locator('dialog[open] button[type=submit]');
  try {
    // As a link does, without loading the console again.
    await page.evaluate(`history.pushState({}, '', ${JSON.stringify(`/console/p/1/r/1/${path}`)})`);
    await button.waitFor();
    await loaded(page);
    const [response] = await Promise.all([
      page.waitForResponse((answer) => isChange(answer.request().method(), answer.url())),
      walk(page, submit, fields),
    ]);
    if (!response.ok()) return `${path}: ${response.status()} ${await response.text()}`;
    // It opens another page, or shows a secret.
    await button.waitFor({ state: 'detached' });
    return null;
  } catch (error) {
    return `${path}: ${String(error)} ${(await page.getByRole('alert').allInnerTexts()).join(' ')}`;
  }
}

describe('every form', () => {
  it('is filled and sent with the keyboard alone', { timeout: LOOP_MS }, async () => {
    const page = await consoleOf.open('overview');
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on('dialog', (question) => void question.accept());
    const problems: string[] = [];
    for (const form of forms()) {
      const problem = await send(page, form);
      if (problem !== null) problems.push(problem);
    }
    expect(problems).toEqual([]);
  });
});
