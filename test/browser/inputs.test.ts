/** Input that is wrong, incomplete or not final: the form names it at the field, and loses nothing that was typed. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { useConsole } from './console.ts';

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
