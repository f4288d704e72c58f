/**
 * Fills and sends forms, and does every action, with the keyboard alone: Tab from the first field to the button that sends,
 * with text, options and marks on the way. A control that Tab does not reach fails here.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { useConsole } from './console.ts';
import { createHost, createResources } from './keyboard-resources.ts';
import { type Form, press, send } from './keyboard-walk.ts';

const consoleOf = useConsole({ CLOUDYARD_WEBHOOK_ALLOW_PRIVATE: '1' });
const DAY_MS = 86_400_000;
const LOOP_MS = 600_000;
const receiver = createServer((_, response) => response.end());
let ids: Record<string, string> = {};

beforeAll(async () => {
  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening));
  ids = await createResources(consoleOf.yard, `127.0.0.1:${(receiver.address() as AddressInfo).port}`);
}, LOOP_MS);
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
  ['api-keys/~new', 'Create API key', { Name: 'typed', 'Namespace 1': 'default', 'Container 1': 'web' }],
  ['api-keys/key/edit', 'Save', { Description: 'typed' }],
  [
    'pull-secrets/~new',
    'Create pull secret',
    { Name: 'typed', Registry: 'r.example', Login: 'me', Password: 'secret' },
  ],
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
  ['clients/1/limit', 'Set limit', { Quota: 'Volumes', Limit: '900' }],
  ['development/faults/new', 'Inject fault', { Message: 'typed' }],
  [`networks/${ids['network']}/subnets/new`, 'Create subnet', { Name: 'another', 'Address range': '10.11.0.0/24' }],
];

const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const confirm = (name: string) => ({ [`Type ${name} to confirm`]: name });

/** Actions without fields and deletions, of what the forms have renamed. */
const actions = (): readonly Form[] => [
  ['hosts/1/spare/drain', 'Drain host', {}],
  ['hosts/1/spare/undrain', 'Undrain host', {}],
  ['hosts/1/spare/forget', 'Forget host', confirm('spare')],
  [`development/faults/${ids['fault']}/clear`, 'Clear fault', {}],
  ['development/faults/clear', 'Clear all faults', {}],
  [`file-shares/${ids['share']}/access-rules/${ids['accessRule']}/remove`, 'Remove', {}],
  [`file-shares/${ids['share']}/delete`, 'Delete file share', confirm('renamed')],
  [`snapshots/${ids['spareSnapshot']}/delete`, 'Delete snapshot', confirm('spare')],
  [`volumes/${ids['volume']}/snapshots/new`, 'Create snapshot', { Name: 'newest' }],
  [`volumes/${ids['volume']}/revert`, 'Revert volume', confirm('renamed')],
  [`lifecycle-policies/pause?ids=${ids['policy']}`, 'Pause', {}],
  [`lifecycle-policies/resume?ids=${ids['policy']}`, 'Resume', {}],
  [`lifecycle-policies/run?ids=${ids['policy']}`, 'Run now', {}],
  [`lifecycle-policies/${ids['policy']}/pause`, 'Pause', {}],
  [`lifecycle-policies/${ids['policy']}/resume`, 'Resume', {}],
  [`lifecycle-policies/${ids['policy']}/run`, 'Run now', {}],
  [`lifecycle-policies/${ids['policy']}/volumes/${ids['volume']}/remove`, 'Remove', {}],
  [`lifecycle-policies/${ids['policy']}/schedules/${ids['schedule']}/remove`, 'Remove', {}],
  [`lifecycle-policies/${ids['policy']}/delete`, 'Delete lifecycle policy', confirm('renamed')],
  [`volumes/${ids['volume']}/delete`, 'Delete volume', confirm('renamed')],
  [`load-balancers/${ids['balancer']}/l7-policies/${ids['l7']}/down`, 'Move', {}],
  [`load-balancers/${ids['balancer']}/l7-policies/${ids['l7']}/up`, 'Move', {}],
  [`load-balancers/${ids['balancer']}/l7-policies/${ids['l7']}/rules/${ids['rule']}/remove`, 'Remove', {}],
  [`load-balancers/${ids['balancer']}/l7-policies/${ids['l7']}/delete`, 'Delete L7 policy', confirm('renamed')],
  [`load-balancers/${ids['balancer']}/pools/${ids['sparePool']}/delete`, 'Delete pool', confirm('spare')],
  [`load-balancers/${ids['balancer']}/listeners/${ids['listener']}/delete`, 'Delete listener', confirm('renamed')],
  [`load-balancers/${ids['balancer']}/failover`, 'Repair', {}],
  [`load-balancers/${ids['balancer']}/delete`, 'Delete load balancer', confirm('renamed')],
  [`subnets/${ids['spareSubnet']}/delete`, 'Delete subnet', confirm('spare')],
  [`networks/${ids['spareNetwork']}/delete`, 'Delete network', confirm('spare')],
  [`secrets/${ids['spareSecret']}/delete`, 'Delete secret', confirm('spare')],
  [
    `registries/${ids['registry']}/delete-tag?repository=team%2Fapp&digest=${digest('a')}&tag=${ids['spareTag']}`,
    'Delete tag',
    confirm(ids['spareTag']!),
  ],
  [
    `registries/${ids['registry']}/delete-artifact?repository=team%2Fapp&digest=${digest('a')}`,
    'Delete artifact',
    confirm(digest('a').slice(0, 'sha256:'.length + 12)),
  ],
  [`registries/${ids['registry']}/delete-repository?repository=team%2Fapp`, 'Delete repository', confirm('team/app')],
  [`registries/${ids['registry']}/users/${ids['user']}/secret`, 'Replace secret', {}],
  [`registries/${ids['registry']}/users/${ids['user']}/delete`, 'Delete user', confirm('ci')],
  [`registries/${ids['registry']}/delete`, 'Delete registry', confirm('images')],
  [
    'api-keys/key/verify',
    'Verify',
    { Secret: ids['apiKey']!, Namespace: 'default', Container: 'web' },
    'The key opens the container.',
  ],
  ['api-keys/key/disable', 'Disable', {}],
  ['api-keys/key/enable', 'Enable', {}],
  ['api-keys/key/delete', 'Delete API key', confirm('key')],
  ['pull-secrets/hub/verify', 'Verify', {}, 'unusable'],
  ['pull-secrets/hub/delete', 'Delete pull secret', confirm('hub')],
  ['quotas/threshold/reset', 'Reset', {}],
  [`quotas/requests/${ids['deletedRequest']}/delete`, 'Delete request', {}],
  [`webhooks/${ids['webhook']}/delete`, 'Delete webhook', confirm(ids['receiver']!)],
  ['user-actions/unsubscribe', 'Unsubscribe', {}],
  ['tasks/acknowledge', 'Acknowledge all', {}],
  [`tokens/${ids['spareToken']}/revoke`, 'Revoke token', confirm('spare')],
  [`projects/${ids['spareProject']}/delete`, 'Delete project', confirm('spare')],
  ['development/clock', 'Set the time', { 'New time': new Date(Date.now() + 2 * DAY_MS).toISOString() }],
];

/** Buttons that send a request without a dialog. */
const buttons = (): readonly (readonly [path: string, label: string])[] => [
  [`tasks/${ids['task']}`, 'Acknowledge Create network'],
  [`notifications/${ids['notification']}`, `Resend to http://${ids['receiver']}`],
  [`user-actions/${ids['action']}`, 'Resend'],
  ['development', 'Advance 1 hour'],
  ['development', 'Return to the real time'],
];

interface Route {
  readonly path: string;
  readonly children?: readonly Route[];
}

/** The dialogs of all pages, as expressions for paths. */
async function dialogPatterns(): Promise<RegExp[]> {
  // By a name that is computed: the sources of the console have compiler options of their own.
  const file = join(root, 'console', 'src', 'pages.ts');
  const { pages } = (await import(file)) as { pages: readonly { routes: readonly Route[] }[] };
  const dialogs = pages.flatMap(({ routes }) =>
    routes.flatMap(({ path, children = [] }) => children.map((child) => `${path}/${child.path}`)),
  );
  return dialogs.map((path) => new RegExp(`^${path.replaceAll(/\$\w+/g, '[^/]+')}$`));
}

let page: Page;
const problemsOf = async <T>(all: readonly T[], use: (each: T) => Promise<string | null>): Promise<string[]> => {
  const problems: string[] = [];
  for (const each of all) {
    const problem = await use(each);
    if (problem !== null) problems.push(problem);
  }
  return problems;
};

describe('with the keyboard alone', () => {
  it('every form is filled and sent, every action is done, and every button pressed', {
    timeout: LOOP_MS,
  }, async () => {
    const { yard } = consoleOf;
    page = await consoleOf.open('overview');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    page.on('dialog', (question) => void question.accept());
    // A task locks its resource, and the next form may change the same one.
    const sendWhenUnlocked = async (form: Form) => {
      const active = async () => (await yard.get('/cloud/v1/tasks?state=NEW&state=RUNNING&limit=1')).body.count;
      await expect.poll(active).toBe(0);
      return send(page, form);
    };
    expect(await problemsOf(forms(), sendWhenUnlocked)).toEqual([]);

    ids['notification'] = (await yard.get('/cloudyard/v1/clients/1/notifications')).body.results[0].id;
    ids['action'] = (await yard.get('/cloud/v1/user_actions?limit=1')).body.results[0].id;
    const tasks = (await yard.get('/cloud/v1/tasks?state=FINISHED&limit=1000')).body.results;
    ids['task'] = tasks.find(({ task_type }: { task_type: string }) => task_type === 'create_network').id;
    ids['fault'] = String((await yard.get('/cloudyard/v1/dev/faults')).body.results[0].id);
    await createHost(yard);
    const pressable = buttons();
    expect(await problemsOf(pressable, ([path, label]) => press(page, path, label))).toEqual([]);
    expect(await problemsOf(actions(), sendWhenUnlocked)).toEqual([]);
  });

  it('no dialog is left out', async () => {
    const paths = [...forms(), ...actions()].map(([path]) => path.split('?')[0]!);
    const missing = (await dialogPatterns()).filter((pattern) => !paths.some((path) => pattern.test(path)));
    expect(missing).toEqual([]);
  });
});
