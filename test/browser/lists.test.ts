/** What lists do with text that is typed, with links to filters, and with pages. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { loaded, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;

describe('a filter that is typed', () => {
  it.each([
    ['networks', 'Filter'],
    ['tasks', 'Type'],
    ['audit', 'Resource name'],
    ['user-actions', 'Name of the resource'],
  ])('of %s keeps the place of the cursor, and is in the URL', async (path, label) => {
    const page = await open(path);
    const field = page.getByLabel(label, { exact: true });
    await field.focus();
    await page.keyboard.type('ad');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.type('bc');
    expect(await field.inputValue()).toBe('abcd');
    await expect.poll(() => [...new URL(page.url()).searchParams.values()]).toEqual(['abcd']);
  });

  it('finds letters with accents that are written as one character or two', async () => {
    const policy = { name: 'cafe\u0301', action: 'volume_snapshot', schedules: [], volume_ids: [] };
    await consoleOf.yard.insist('POST', '/cloud/v1/lifecycle_policy/1/1', policy);
    const page = await open('lifecycle-policies?q=nothing');
    await page.getByLabel('Filter', { exact: true }).fill('CAF\u00C9');
    await page.getByRole('link', { name: 'cafe\u0301' }).waitFor();
  });

  it('is cleared with its button', async () => {
    const page = await open('networks?q=nothing');
    const field = page.getByLabel('Filter', { exact: true });
    expect(await field.inputValue()).toBe('nothing');
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await expect.poll(() => field.inputValue()).toBe('');
  });

  it.each([
    ['networks?q=nothing', 'Filter'],
    ['audit?operation=nothing', 'Operation'],
    ['notifications?state=failed', 'Delivery'],
  ])('has the focus again after the button that clears it: %s', async (path, label) => {
    const page = await open(path);
    const field = page.getByLabel(label, { exact: true });
    await field.focus();
    await page.getByRole('button', { name: 'Clear the filter' }).press('Enter');
    await expect.poll(() => field.inputValue()).toBe('');
    await expect.poll(() => page.evaluate('document.activeElement.ariaLabel')).toBe(label);
  });

  it('is cleared when the palette opens the same list', async () => {
    const page = await open('networks');
    const field = page.getByLabel('Filter', { exact: true });
    await field.fill('nothing');
    await page.getByText('Nothing matches the filter').waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('go to networks');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'default', exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('');
    await expect.poll(() => field.inputValue()).toBe('');
  });

  it('of a time is complete when the last digit is typed', async () => {
    const page = await open('audit');
    await page.getByLabel('From', { exact: true }).focus();
    await page.keyboard.type('01022030');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.type('1135AM');
    await expect.poll(() => new URL(page.url()).searchParams.get('from_timestamp')).toBe('2030-01-02T11:35');
  });

  it('of a size of storage can be emptied', async () => {
    const page = await open('prices');
    const size = page.getByLabel('Size of storage (GiB)');
    await size.fill('7');
    await size.press('Backspace');
    expect(await size.inputValue()).toBe('');
    await size.press('2');
    await expect.poll(() => new URL(page.url()).searchParams.get('size')).toBe('2');
  });
});

describe('a link to a filter', () => {
  it('whose value no row has shows the value', async () => {
    const page = await open('networks?type=vlan');
    await page.getByText('Nothing matches the filter').waitFor();
    expect(await page.getByLabel('Type', { exact: true }).inputValue()).toBe('vlan');
  });

  it('of tasks by an unknown state shows no task', async () => {
    const page = await open('tasks?state=error');
    await page.getByText('must be one of').waitFor();
    expect(await page.getByLabel('State', { exact: true }).inputValue()).toBe('error');
  });
});

describe('a list that is cut', () => {
  it('says that it does not have all rows, also when none matches the filter', async () => {
    const page = await open('overview');
    await page.route(/\/networks\/1\/1\?/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), count: 10_500 } });
    });
    await page.getByRole('link', { name: 'Networks', exact: true }).click();
    await page.getByText('1 of 10,500 rows; only 1 are listed and filtered').waitFor();
    await page.getByLabel('Filter', { exact: true }).fill('nothing');
    await page.getByText('0 of 10,500 rows; only 1 are listed and filtered').waitFor();
  });

  it('does not make the list of tasks mark a resource that it lacks as deleted', async () => {
    const { yard } = consoleOf;
    const task = await yard.ended(await yard.insist('POST', '/cloud/v1/networks/1/1', { name: 'beyond' }));
    const page = await open('volumes');
    await page.route(/\/networks\/1\/1\?/, (route) => route.fulfill({ json: { count: 10_500, results: [] } }));
    const read = page.waitForResponse(/\/networks\/1\/1\?/);
    await page.getByRole('link', { name: 'Tasks', exact: true }).click();
    await (await read).finished();
    await loaded(page);
    await page.getByRole('link', { name: task.created_resources.networks[0].slice(0, 8) }).waitFor();
  });
});

describe('a long name', () => {
  it.each([
    ['left-to-right', 'a long name '],
    ['right-to-left', 'שם ארוך מאוד '],
  ])('in a %s script is cut at its end', async (_script, words) => {
    const name = words.repeat(12).trim();
    const policy = { name, action: 'volume_snapshot' };
    await consoleOf.yard.insist('POST', '/cloud/v1/lifecycle_policy/1/1', policy);
    const page = await open('lifecycle-policies');
    await page.getByRole('link', { name }).waitFor();
    // Whether the first and the last character are inside the cell.
    const visibleEnds = `[0, ${name.length - 1}].map((at) => {
      const link = [...document.querySelectorAll('td.name a')].find(({ innerText }) => innerText === ${JSON.stringify(name)});
      const text = document.createTreeWalker(link, NodeFilter.SHOW_TEXT).nextNode();
      const range = new Range();
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      const [cell, character] = [link.closest('td'), range].map((each) => each.getBoundingClientRect());
      return character.left >= cell.left && character.right <= cell.right;
    })`;
    expect(await page.evaluate(visibleEnds)).toEqual([true, false]);
  });
});

/** Whether no part of the first row is outside of the window or below the bar at the top. */
const isFirstRowInView = `(({ top, bottom }) =>
  top >= document.querySelector('header.top').getBoundingClientRect().bottom && bottom <= innerHeight
)(document.querySelector('tbody tr').getBoundingClientRect())`;

describe('a page of a list', () => {
  it('is announced and shown from its start, and its button keeps the focus on the last page', async () => {
    const names = Array.from({ length: 101 }, (_, index) => `key-${index}`);
    await Promise.all(
      names.map((name) => consoleOf.yard.insist('POST', '/cloud/v1/caas/keys/1/1', { name, containers: [] })),
    );
    const page = await open('api-keys');
    await loaded(page);
    const next = page.getByRole('button', { name: 'Next' });
    await next.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('51–100 of 101').waitFor();
    expect(await page.evaluate(isFirstRowInView)).toBe(true);
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('101–101 of 101').waitFor();
    expect(await next.isDisabled()).toBe(true);
    expect(await page.evaluate('document.activeElement.innerText.trim()')).toBe('Next');
  });
});

describe('a choice whose rows are being read', () => {
  /** Holds the responses of these reads until the returned function is called. */
  async function hold(page: Page, reads: RegExp): Promise<() => void> {
    const held = Promise.withResolvers<void>();
    await page.route(reads, async (route) => {
      await held.promise;
      await route.continue();
    });
    return held.resolve;
  }

  it('shows that the rows and prices are those of the last choice', async () => {
    const { yard } = consoleOf;
    await yard.ended(
      await yard.insist('POST', '/cloud/v1/volumes/1/1', { name: 'priced', size: 1, source: 'new-volume' }),
    );
    const page = await open('tasks');
    const table = page.getByRole('group', { name: 'Tasks of the project' });
    const opacity = () => page.evaluate("Number(getComputedStyle(document.querySelector('.table-wrap')).opacity)");
    await table.waitFor();
    const showAll = await hold(page, /v1\/tasks\?.*state=ERROR/);
    await page.getByLabel('State', { exact: true }).selectOption('ERROR');
    await expect.poll(opacity).toBeLessThan(1);
    expect(await table.getAttribute('aria-busy')).toBe('true');
    showAll();
    await page.getByText('No task matches the filter').waitFor();
    const showFinished = await hold(page, /v1\/tasks\?.*state=FINISHED/);
    await page.getByLabel('State', { exact: true }).selectOption('FINISHED');
    await page.locator('main .skeleton').first().waitFor();
    expect(await page.getByText('No task matches the filter').count()).toBe(0);
    showFinished();
    await expect.poll(() => table.getAttribute('aria-busy')).toBe('false');
  });

  it('shows that the price is that of the last size', async () => {
    const page = await open('volumes/new');
    page.on('dialog', (dialog) => void dialog.accept());
    const price = page.locator('dialog .price');
    await price.locator('strong').waitFor();
    const show = await hold(page, /pricing/);
    await page.getByLabel('Size (GiB)').fill('700');
    await expect.poll(() => price.getAttribute('aria-busy')).toBe('true');
    show();
    await expect.poll(() => price.getAttribute('aria-busy')).toBe('false');
  });
});
