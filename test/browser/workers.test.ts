import { describe, expect, it } from 'vitest';
import { checkPage, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

describe('the page of workers and drivers', () => {
  it('shows each driver with its state and a remedy to copy', async () => {
    const { body } = await consoleOf.yard.get('/healthz/drivers');
    const simulated = body.drivers.find((driver: { real: boolean; remedy?: string }) => !driver.real && driver.remedy);
    const page = await open('workers');
    const table = page.getByRole('table', { name: 'Workers and drivers' });
    await table.getByRole('cell', { name: simulated.kind, exact: true }).waitFor();
    expect(await table.getByRole('row').count()).toBe(body.drivers.length + 1);
    const row = table.getByRole('row').filter({ hasText: simulated.kind });
    expect(await row.locator('.badge.simulated').count()).toBe(1);
    expect(await row.locator('code').innerText()).toBe(simulated.remedy);
    await page.getByRole('button', { name: `Copy the remedy of ${simulated.kind}` }).waitFor();
    await checkPage(page);
  });

  it('filters by real and simulated', async () => {
    const page = await open('workers?real=real');
    const { body } = await consoleOf.yard.get('/healthz/drivers');
    const real = body.drivers.filter((driver: { real: boolean }) => driver.real).length;
    await page.getByRole('status').getByText(`${real} of ${body.drivers.length}`).waitFor();
  });
});
