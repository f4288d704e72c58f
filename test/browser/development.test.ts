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
    await page.getByRole('link', { name: 'Clear all faults' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Clear all faults' }).click();
    await page.getByText('No faults').waitFor();
    expect((await faults()).body.results).toEqual([]);
  });
});
