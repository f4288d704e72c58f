import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { checkPage, loaded, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const policies = '/cloud/v1/lifecycle_policy/1/1';

async function newVolume(name: string): Promise<string> {
  const { yard } = consoleOf;
  const answer = await yard.post('/cloud/v1/volumes/1/1', { name, size: 4, source: 'new-volume' });
  return (await yard.ended(answer)).created_resources.volumes[0];
}

async function newPolicy(name: string, fields: object = {}): Promise<any> {
  const schedules = [{ type: 'cron', hour: '3', max_quantity: 2 }];
  const body = { action: 'volume_snapshot', name, schedules, ...fields };
  return (await consoleOf.yard.post(policies, body)).body;
}

async function policyNamed(name: string): Promise<any> {
  const { body } = await consoleOf.yard.get(`${policies}?need_volumes=true`);
  return body.results.find((policy: { name: string }) => policy.name === name);
}

const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

describe('the pages of lifecycle policies', () => {
  it('creates a policy and shows its next runs, words and maximum usage before', async () => {
    const volume = await newVolume('database');
    const page = await open('lifecycle-policies');
    await page.getByRole('link', { name: 'Create lifecycle policy' }).click();
    await page.getByLabel('Name', { exact: true }).fill('nightly');
    await page.getByLabel('Hour', { exact: true }).fill('4');
    await page.getByLabel('Weekday').fill('mon-fri');
    await page.getByLabel('Time zone').fill('Europe/Berlin');
    await page.getByLabel('Snapshots to keep of each volume').fill('7');
    await page.getByLabel('database').check();
    await page.getByText('At 04:00, Monday through Friday').waitFor();
    await page.getByRole('status', { name: 'Next runs' }).getByText('4:00 AM').first().waitFor();
    const usage = page.getByRole('status', { name: 'Maximum usage' });
    await usage.getByText('28 GiB').waitFor();
    await checkPage(page);
    await submit(page, 'Create lifecycle policy');
    await page.getByRole('heading', { name: 'nightly' }).waitFor();
    const created = await policyNamed('nightly');
    expect(created).toMatchObject({ volumes: [{ volume_id: volume }], status: 'active' });
    expect(created.schedules).toMatchObject([
      { type: 'cron', hour: '4', minute: '0', day_of_week: 'mon-fri', timezone: 'Europe/Berlin', max_quantity: 7 },
    ]);
  });

  it('shows an error of the server at the field of its schedule, and keeps the text', async () => {
    const page = await open('lifecycle-policies/new');
    await page.getByLabel('Name', { exact: true }).fill('wrong');
    await page.getByLabel('Hour', { exact: true }).fill('25');
    await submit(page, 'Create lifecycle policy');
    await page.locator('.field:has(> label:text-is("Hour")) [role=alert]').getByText(/./).first().waitFor();
    expect(await page.getByLabel('Hour', { exact: true }).getAttribute('aria-invalid')).toBe('true');
    // The button is far below the field and the message.
    await page.getByLabel('Hour', { exact: true }).and(page.locator(':focus')).waitFor();
    await page.getByText('Correct the marked fields').waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('wrong');
  });

  it('renames, pauses, resumes and deletes a policy', async () => {
    const { id } = await newPolicy('draft');
    const page = await open(`lifecycle-policies/${id}`);
    await page.getByRole('link', { name: 'Edit', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('final');
    await submit(page, 'Save');
    await page.getByRole('heading', { name: 'final' }).waitFor();
    await page.getByRole('link', { name: 'Pause' }).click();
    await submit(page, 'Pause');
    await page.getByText('paused', { exact: true }).waitFor();
    expect(await policyNamed('final')).toMatchObject({ id, status: 'paused' });
    await page.getByRole('link', { name: 'Resume' }).click();
    await submit(page, 'Resume');
    await page.getByText('active', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Delete' }).click();
    await page.getByLabel('Type final to confirm').fill('final');
    await submit(page, 'Delete lifecycle policy');
    await page.getByText('Deleted lifecycle policy final').waitFor();
    expect(await policyNamed('final')).toBeUndefined();
  });

  it('adds, edits and removes schedules and volumes', async () => {
    await newVolume('extra');
    const { id } = await newPolicy('parts');
    const page = await open(`lifecycle-policies/${id}`);
    await page.getByRole('link', { name: 'Add schedule' }).click();
    await page.getByLabel('Runs', { exact: true }).selectOption('interval');
    await page.getByLabel('Hours', { exact: true }).fill('6');
    await page.getByText('Every 6 hours').waitFor();
    await submit(page, 'Add schedule');
    await page.getByRole('cell', { name: 'Every 6 hours' }).waitFor();
    await page.getByRole('link', { name: 'Edit schedule 2' }).click();
    await page.getByLabel('Days of age').fill('3');
    await submit(page, 'Save');
    await page.getByRole('cell', { name: 'at most 3 days' }).waitFor();
    expect((await policyNamed('parts')).schedules[1]).toMatchObject({ hours: 6, retention_time: { days: 3 } });
    await page.getByRole('link', { name: 'Remove schedule 1' }).click();
    await page.getByText('The same by code').click();
    await page.getByText('remove_schedules').waitFor();
    await submit(page, 'Remove');
    await expect.poll(async () => (await policyNamed('parts')).schedules.length).toBe(1);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/lifecycle-policies/${id}?tab=volumes`);
    await page.getByRole('link', { name: 'Add volumes' }).click();
    await page.getByLabel('extra').check();
    await submit(page, 'Add volumes');
    await page.getByText('Added 1 volume to parts').waitFor();
    await page.getByRole('link', { name: 'Remove volume extra' }).click();
    await submit(page, 'Remove');
    await page.getByText('No volumes').waitFor();
    expect((await policyNamed('parts')).volumes).toEqual([]);
  });

  it('pauses and resumes several policies at once', async () => {
    await newPolicy('bulk-1');
    await newPolicy('bulk-2');
    const page = await open('lifecycle-policies?q=bulk');
    await page.getByLabel('Select bulk-2').waitFor();
    // Both before the list is rendered again.
    await page.evaluate('for (const box of document.querySelectorAll("main td input[type=checkbox]")) box.click()');
    await page.getByRole('link', { name: 'Pause selected (2)' }).click();
    await page.reload();
    await page.getByRole('dialog', { name: 'Pause 2 policies' }).getByText('bulk-2').waitFor();
    await page.getByText('The same by code').click();
    await page.getByText('"status": "paused"').first().waitFor();
    const code = await page.getByRole('dialog').locator('pre').innerText();
    expect(code.match(/-X PATCH/g)).toHaveLength(2);
    await checkPage(page);
    await submit(page, 'Pause');
    await page.getByText('Paused 2 policies').waitFor();
    expect([(await policyNamed('bulk-1')).status, (await policyNamed('bulk-2')).status]).toEqual(['paused', 'paused']);
    await page.getByLabel('Select bulk-1').check();
    await page.getByRole('link', { name: 'Resume selected (1)' }).click();
    await submit(page, 'Resume');
    await page.getByText('Resumed 1 policy').waitFor();
    expect([(await policyNamed('bulk-1')).status, (await policyNamed('bulk-2')).status]).toEqual(['active', 'paused']);
  });

  it('runs policies now, and shows the run with its task', async () => {
    const volume = await newVolume('upgraded');
    const { id } = await newPolicy('run-1', { volume_ids: [volume] });
    await newPolicy('run-2', { volume_ids: [volume] });
    const page = await open(`lifecycle-policies/${id}`);
    await page.getByRole('link', { name: 'Run now' }).click();
    await page.getByText('1 snapshot is created now').waitFor();
    await checkPage(page);
    await submit(page, 'Run now');
    await page.getByText('Ran run-1').waitFor();
    const runs = page.getByRole('table', { name: 'Past runs' });
    await runs.getByRole('cell', { name: 'done' }).waitFor();
    await runs.getByRole('link', { name: 'request' }).click();
    await page.getByRole('heading', { name: 'Run lifecycle policy' }).waitFor();
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/lifecycle-policies?q=run-`);
    await page.getByLabel('Select run-1').check();
    await page.getByLabel('Select run-2').check();
    await page.getByRole('link', { name: 'Run selected (2)' }).click();
    await submit(page, 'Run now');
    await page.getByText('Ran 2 policies').waitFor();
    const { body } = await consoleOf.yard.get(`/cloud/v1/snapshots/1/1?volume_id=${volume}`);
    expect(body.count).toBe(3);
  });

  it('says that a schedule was removed elsewhere, and keeps what was typed', async () => {
    const { id } = await newPolicy('elsewhere');
    const [schedule] = (await policyNamed('elsewhere')).schedules;
    const page = await open(`lifecycle-policies/${id}/schedules/${schedule.id}`);
    const name = page.getByLabel('Name of the snapshots');
    await name.fill('kept text');
    const remove = `/cloud/v1/lifecycle_policy/1/1/${id}/remove_schedules`;
    await consoleOf.yard.post(remove, { schedule_ids: [schedule.id] });
    await page.getByRole('alert').getByText('This schedule was deleted elsewhere.').waitFor();
    expect(await name.inputValue()).toBe('kept text');
    await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/lifecycle-policies/${id}/schedules/${schedule.id}/remove`);
    await page.getByRole('dialog', { name: 'The schedule was not found' }).waitFor();
  });

  it('offers a chosen volume that was deleted elsewhere, so that it can be taken out', async () => {
    const volumes = [await newVolume('chosen-kept'), await newVolume('chosen-lost')];
    const page = await open('lifecycle-policies/new');
    await page.getByLabel('Name', { exact: true }).fill('chosen');
    await page.getByLabel('chosen-kept').check();
    await page.getByLabel('chosen-lost').check();
    await consoleOf.yard.ended(await consoleOf.yard.insist('DELETE', `/cloud/v1/volumes/1/1/${volumes[1]!}`));
    const lost = page.getByLabel(`${volumes[1]} deleted`);
    await lost.waitFor();
    await submit(page, 'Create lifecycle policy');
    await lost.and(page.locator('[aria-invalid=true]:focus')).waitFor();
    await lost.click();
    await submit(page, 'Create lifecycle policy');
    await page.getByText('Created lifecycle policy chosen').waitFor();
    expect((await policyNamed('chosen')).volumes).toMatchObject([{ volume_id: volumes[0] }]);
  });

  it('repeats only the failed requests of several', async () => {
    const volume = await newVolume('partly');
    await newPolicy('partly-1', { volume_ids: [volume] });
    const { id } = await newPolicy('partly-2', { volume_ids: [volume] });
    const page = await open('lifecycle-policies?q=partly-');
    await page.getByLabel('Select partly-1').check();
    await page.getByLabel('Select partly-2').check();
    await page.getByRole('link', { name: 'Run selected (2)' }).click();
    const run = `**/lifecycle_policy/1/1/${id}/run`;
    await page.route(run, (route) => route.fulfill({ status: 503, json: { message: 'try later' } }));
    await submit(page, 'Run now');
    await page.getByText('1 of 2 failed. partly-2: try later').waitFor();
    await page.getByText('1 of 2 succeeded: partly-1').waitFor();
    await page.unroute(run);
    // What succeeded is not selected any more, also for a dialog that is closed and opened again.
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Run selected (1)' }).click();
    await submit(page, 'Run now');
    await page.getByText('Ran 1 policy').waitFor();
    const { body } = await consoleOf.yard.get(`/cloud/v1/snapshots/1/1?volume_id=${volume}`);
    expect(body.count).toBe(2);
  });

  it('shows runs that were late and those that they replaced', async () => {
    const { id } = await newPolicy('missed', { schedules: [{ type: 'interval', hours: 1, max_quantity: 1 }] });
    const { yard } = consoleOf;
    const { body } = await yard.post('/cloudyard/v1/dev/clock', { advance_seconds: 0 });
    // A clock that is set forwards is like downtime.
    const later = new Date(new Date(body.now).getTime() + 4.5 * 3_600_000);
    await yard.post('/cloudyard/v1/dev/clock', { set: later.toISOString() });
    const page = await open(`lifecycle-policies/${id}?tab=calendar`);
    await page.getByRole('cell', { name: /^Started 3 hours \d+ minutes late, and replaced 3 later runs$/ }).waitFor();
    await page.getByText('1 late').waitFor();
    await page
      .getByText(/^\d skipped$/)
      .first()
      .waitFor();
    await checkPage(page);
  });

  it('shows past and coming runs, and the snapshots that retention deletes', async () => {
    const volume = await newVolume('kept');
    const { id } = await newPolicy('calendar', {
      schedules: [{ type: 'interval', hours: 1, max_quantity: 1 }],
      volume_ids: [volume],
    });
    await consoleOf.yard.post('/cloudyard/v1/dev/clock', { advance_seconds: 3700 });
    const page = await open(`lifecycle-policies/${id}`);
    await page.getByRole('status', { name: 'Maximum usage' }).getByText('4 GiB').waitFor();
    await page.getByRole('link', { name: 'Calendar' }).click();
    await page.getByRole('table', { name: 'Past runs' }).getByText('done').waitFor();
    await page
      .getByText(/\d+ coming/)
      .first()
      .waitFor();
    // The first 100 hourly runs: the days after them are not shown as days without runs.
    await page.getByText(/^Coming runs are shown until /).waitFor();
    const { now } = (await consoleOf.yard.get('/cloudyard/v1/dev/clock')).body;
    const day = page.locator('.calendar [aria-current=date] .day');
    await expect.poll(() => day.innerText()).toBe(String(new Date(now).getDate()));
    await checkPage(page);
    await page.getByRole('link', { name: 'Retention' }).click();
    await page.getByRole('link', { name: `Snapshot of volume ${volume}` }).waitFor();
    await checkPage(page);
  });

  it('marks the next day as today in a calendar that stays open', async () => {
    const { id } = await newPolicy('overnight');
    const tomorrow = new Date((await consoleOf.yard.get('/cloudyard/v1/dev/clock')).body.now);
    tomorrow.setDate(tomorrow.getDate() + 1);
    const month = `${tomorrow.getFullYear()}-${String(tomorrow.getMonth() + 1).padStart(2, '0')}`;
    const page = await open(`lifecycle-policies/${id}`, { ownContext: true });
    await page.clock.install();
    await page.goto(`${page.url()}?tab=calendar&month=${month}`);
    await page.locator('.calendar').waitFor();
    await loaded(page);
    // Responses have the date of the server, which is still today.
    await page.route('**', (route) => route.abort());
    await page.clock.fastForward('24:00:00');
    const day = page.locator('.calendar [aria-current=date] .day');
    await expect.poll(() => day.innerText()).toBe(String(tomorrow.getDate()));
  });

  it('has no accessibility violations, and renders names as text', async () => {
    const { id } = await newPolicy('<b>مرحبا</b> 🚀');
    const page = await open('lifecycle-policies');
    await page.getByRole('link', { name: '<b>مرحبا</b> 🚀' }).waitFor();
    await checkPage(page);
    for (const tab of ['', '?tab=volumes', '?tab=audit']) {
      await page.goto(`${consoleOf.yard.url}/console/p/1/r/1/lifecycle-policies/${id}${tab}`);
      await page.getByRole('heading', { name: '<b>مرحبا</b> 🚀' }).waitFor();
      await checkPage(page);
    }
  });
});
