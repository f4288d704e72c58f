import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const CLOCK = '/cloudyard/v1/dev/clock';
const DAY_MS = 86_400_000;

const offset = async () => Date.parse((await consoleOf.yard.get(CLOCK)).body.now) - Date.now();

describe('the page of development mode', () => {
  it('advances and sets the clock, and returns to the real time', async () => {
    const page = await open('development');
    const clock = page.getByRole('region', { name: 'Clock' });
    await clock.getByText('real time', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Advance 1 day' }).click();
    await clock.getByText('moved', { exact: true }).waitFor();
    expect(await offset()).toBeGreaterThan(DAY_MS - 60_000);
    // Times are relative to the clock of the server.
    const { yard } = consoleOf;
    await yard.ended(await yard.post('/cloud/v1/networks/1/1', { name: 'of tomorrow' }));
    await page.getByRole('link', { name: 'Networks' }).click();
    const row = page.getByRole('row').filter({ hasText: 'of tomorrow' });
    await row.getByText('just now').waitFor();
    await page
      .getByRole('row')
      .filter({ hasText: 'default' })
      .first()
      .getByText(/yesterday|1 day ago/)
      .waitFor();
    await page.getByRole('link', { name: 'Development mode' }).click();
    await page.getByRole('link', { name: 'Set the time' }).click();
    await page.getByLabel('New time').fill('tomorrow');
    await page.getByRole('dialog').getByRole('button', { name: 'Set the time' }).click();
    await page.getByRole('alert').first().waitFor();
    expect(await page.getByLabel('New time').inputValue()).toBe('tomorrow');
    await page.getByLabel('New time').fill('2040-01-01T00:00:00Z');
    await page.getByRole('dialog').getByRole('button', { name: 'Set the time' }).click();
    await page.getByText('2040').first().waitFor();
    await page.getByRole('button', { name: 'Return to the real time' }).click();
    await clock.getByText('real time', { exact: true }).waitFor();
    expect(Math.abs(await offset())).toBeLessThan(5000);
  });

  it('shows the runs that happen while the clock moves', async () => {
    const { yard } = consoleOf;
    const created = await yard.post('/cloud/v1/volumes/1/1', { name: 'data', size: 1, source: 'new-volume' });
    const volume = (await yard.ended(created)).created_resources.volumes[0];
    const schedules = [{ type: 'interval', hours: 6 }];
    await yard.post('/cloud/v1/lifecycle_policy/1/1', {
      ...{ action: 'volume_snapshot', name: 'watched', volume_ids: [volume], schedules },
    });
    const page = await open('development');
    const activity = page.getByRole('table', { name: 'Newest tasks' });
    await activity.getByText('Create volume').waitFor();
    await page.getByRole('button', { name: 'Advance 1 day' }).click();
    // Four runs; the schedule keeps two snapshots.
    await expect.poll(() => activity.getByRole('cell', { name: 'Create snapshot' }).count()).toBe(4);
    await expect.poll(() => activity.getByRole('cell', { name: 'Delete snapshot' }).count()).toBe(2);
    await page.getByRole('button', { name: 'Return to the real time' }).click();
    await page.getByText('real time', { exact: true }).waitFor();
  });

  it('injects a fault and clears all', async () => {
    const faults = () => consoleOf.yard.get('/cloudyard/v1/dev/faults');
    const page = await open('development');
    await page.getByRole('link', { name: 'Inject fault' }).click();
    await page.getByLabel('Resource').selectOption('file_share');
    await page.getByLabel('Number of operations').fill('0');
    await page.getByLabel('Message').fill('<i>disk</i> full');
    await page.getByRole('dialog').getByRole('button', { name: 'Inject fault' }).click();
    await page.getByText('must be at least 1').waitFor();
    await page.getByLabel('Number of operations').fill('3');
    await page.getByRole('dialog').getByRole('button', { name: 'Inject fault' }).click();
    await page.getByRole('cell', { name: '<i>disk</i> full' }).waitFor();
    await page.getByRole('cell', { name: '3 of 3' }).waitFor();
    expect((await faults()).body.results).toMatchObject([{ resource: 'file_share', mode: 'fail', count: 3 }]);
    await checkPage(page);
    await consoleOf.yard.post('/cloudyard/v1/dev/faults', { resource: 'volume', operation: 'apply', mode: 'fail' });
    await page
      .getByRole('link', { name: /^Clear fault/ })
      .first()
      .click();
    await page.getByRole('dialog').getByText('The same by code').click();
    await page.getByText(/-X DELETE .*faults\/\d+/).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Clear fault' }).click();
    await page.getByText(/^Cleared fault \d+/).waitFor();
    expect((await faults()).body.results).toMatchObject([{ resource: 'volume' }]);
    await page.getByRole('link', { name: 'Clear all faults' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Clear all faults' }).click();
    await page.getByText('No faults').waitFor();
    expect((await faults()).body.results).toEqual([]);
  });
});
