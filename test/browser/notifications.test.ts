import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

/** A receiver on loopback that refuses the first call and accepts the others. */
const received: string[] = [];
const receiver = createServer((request, response) => {
  let body = '';
  request.on('data', (part: Buffer) => (body += part.toString()));
  request.on('end', () => {
    received.push(body);
    response.writeHead(received.length === 1 ? 410 : 200).end(received.length === 1 ? 'gone' : 'thanks');
  });
});
beforeAll(() => new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve)));
afterAll(() => new Promise((resolve) => receiver.close(resolve)));

const consoleOf = useConsole({ CLOUDYARD_WEBHOOK_ALLOW_PRIVATE: '1' });
const { open } = consoleOf;
const CLIENT = '/cloudyard/v1/clients/1';

const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

describe('the pages of webhooks', () => {
  it('creates a webhook, shows its secret once, and deletes it', async () => {
    const page = await open('webhooks');
    await page.getByText('No webhooks yet').waitFor();
    await page.getByRole('link', { name: 'Create webhook' }).click();
    await page.getByLabel('URL').fill('https://hooks.example.com/cloudyard');
    await submit(page, 'Create webhook');
    const shown = page.getByRole('dialog').locator('pre');
    await page.getByText('It is shown only once').waitFor();
    await checkPage(page);
    const secret = await shown.innerText();
    expect(secret.length).toBeGreaterThan(16);
    await submit(page, 'Done');
    expect((await consoleOf.yard.get(`${CLIENT}/webhooks`)).body.count).toBe(1);
    await checkPage(page);
    await page.getByRole('link', { name: 'https://hooks.example.com/cloudyard' }).click();
    await page.getByText('No notification was sent to this webhook yet').waitFor();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: 'URL' }).fill('ftp://a.example');
    await submit(page, 'Save');
    await page.locator('[aria-invalid=true]').waitFor();
    await page.getByRole('textbox', { name: 'URL' }).fill('https://other.example.com/hook');
    await submit(page, 'Save');
    await page.getByRole('heading', { name: 'other.example.com' }).waitFor();
    await page.getByRole('link', { name: 'Replace secret' }).click();
    await page.getByText('The same by code').click();
    await page.getByText('"secret": null').waitFor();
    await submit(page, 'Replace secret');
    await page.getByText('It is shown only once').waitFor();
    expect(await shown.innerText()).not.toBe(secret);
    await submit(page, 'Done');
    await page.getByRole('link', { name: 'Audit log' }).last().click();
    await page.getByRole('cell', { name: 'updateWebhook' }).first().waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type other.example.com to confirm').fill('other.example.com');
    await submit(page, 'Delete webhook');
    await page.getByText('Deleted webhook other.example.com').waitFor();
    expect((await consoleOf.yard.get(`${CLIENT}/webhooks`)).body.count).toBe(0);
  });

  it('shows an error of the server at the URL, and keeps the text', async () => {
    const page = await open('webhooks/new');
    await page.getByLabel('URL').fill('ftp://hooks.example.com/<b>');
    await submit(page, 'Create webhook');
    await page.locator('[aria-invalid=true]').waitFor();
    expect(await page.getByLabel('URL').inputValue()).toBe('ftp://hooks.example.com/<b>');
    await checkPage(page);
  });

  it('edits the e-mail addresses, and shows which one the API refuses', async () => {
    const page = await open('webhooks/addresses');
    await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('Address 1').fill('nobody');
    await submit(page, 'Save');
    await page.locator('[aria-label="Address 1"][aria-invalid=true]').waitFor();
    await page.getByLabel('Address 1').fill('alerts@example.com');
    await submit(page, 'Save');
    await page.getByText('Updated the e-mail addresses').waitFor();
    expect((await consoleOf.yard.get(CLIENT)).body.emails).toEqual(['alerts@example.com']);
  });
});

describe('the pages of notifications', () => {
  it('shows payload and response of a failed delivery, and sends it again', async () => {
    const { yard } = consoleOf;
    const { port } = receiver.address() as AddressInfo;
    const hook = await yard.post(`${CLIENT}/webhooks`, { url: `http://127.0.0.1:${port}/secret-path` });
    const limits = { regional_limits: [{ region_id: 1, volume_count_limit: 500 }] };
    await yard.post('/cloud/v2/limits_request', { description: 'We grow.', requested_limits: limits });
    const [request] = (await yard.get('/cloud/v2/limits_request')).body.results;
    await yard.post(`/cloudyard/v1/limits_requests/${request.id}/approve`, {});
    const page = await open('notifications');
    const row = page.getByRole('row').filter({ hasText: 'quota' }).first();
    await row.getByText('failed').waitFor();
    await checkPage(page);
    await row.getByRole('link').click();
    await page.getByText('answered 410').waitFor();
    const limited = { name: 'limited', role: 'member', project_ids: [1] };
    const { token } = (await yard.post('/cloudyard/v1/tokens', limited)).body;
    const ofLimited = await open(new URL(page.url()).pathname.replace('/console/p/1/r/1/', ''), { token });
    const disabled = ofLimited.getByRole('button', { name: /^Resend/ }).first();
    expect(await disabled.getAttribute('title')).toBe('The token of this session is limited to projects');
    expect(await disabled.isDisabled()).toBe(true);
    await page.getByRole('link', { name: 'Payload' }).click();
    await page.locator('pre').getByText('volume_count_limit').waitFor();
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByRole('button', { name: `Resend to http://127.0.0.1:${port}` }).click();
    await page.getByText('delivered', { exact: true }).waitFor();
    await page.getByText('200: thanks').first().waitFor();
    expect(received).toHaveLength(2);
    await checkPage(page);
    await page.goto(`${yard.url}/console/p/1/r/1/webhooks/${hook.body.id}`);
    await page.getByRole('table', { name: 'Deliveries' }).getByText('200: thanks').waitFor();
    await page.getByRole('link', { name: 'All deliveries' }).click();
    await page.getByLabel('Delivery', { exact: true }).selectOption('failed');
    await page.getByText('Nothing matches the filter').waitFor();
    expect(new URL(page.url()).searchParams.get('webhook')).toBe(hook.body.id);
    await page.getByLabel('Delivery', { exact: true }).selectOption('delivered');
    await page.getByLabel('Type', { exact: true }).selectOption('quota_request_approved');
    await row.waitFor();
    await page.getByRole('button', { name: 'Created' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('sort')).toBe('created');
    await page.reload();
    await row.getByText('delivered').waitFor();
    await checkPage(page);
  });
});

describe('the page of user actions', () => {
  it('subscribes, shows actions with their payload, and unsubscribes', async () => {
    const { yard } = consoleOf;
    const page = await open('user-actions');
    await page.getByText('No subscription').waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Subscribe' }).click();
    const { port } = receiver.address() as AddressInfo;
    await page.getByLabel('URL').fill(`http://127.0.0.1:${port}/actions`);
    await page.getByLabel('Value of the header').fill('Bearer s3cret');
    await submit(page, 'Subscribe');
    await page.getByText('Subscribed to user actions').waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await yard.post('/cloud/v1/networks/1/1', { name: 'acted' });
    await expect.poll(() => received.some((body) => body.includes('"acted"')), { timeout: 20_000 }).toBe(true);
    await page.goto(`${yard.url}/console/p/1/r/1/user-actions?q=acted&group=network`);
    await page.getByRole('row').filter({ hasText: 'acted' }).getByText('yes').waitFor();
    await page.getByRole('link', { name: 'create network' }).click();
    await page.getByRole('dialog').getByText('"search_field": "acted"').waitFor();
    const delivery = page.getByRole('region', { name: 'Delivery' });
    await delivery.getByText('delivered').waitFor();
    await delivery.getByText('answered 200').waitFor();
    const sent = () => received.filter((body) => body.includes('"acted"')).length;
    const before = sent();
    await delivery.getByRole('button', { name: 'Resend' }).click();
    await expect.poll(sent, { timeout: 20_000 }).toBe(before + 1);
    await expect.poll(() => delivery.getByText('answered 200').count()).toBe(2);
    await delivery.getByText('delivered').waitFor();
    await checkPage(page);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Unsubscribe' }).click();
    await submit(page, 'Unsubscribe');
    await page.getByText('No subscription').waitFor();
    expect((await yard.get('/cloud/v1/user_actions/subscriptions_list')).body.count).toBe(0);
  });
});
