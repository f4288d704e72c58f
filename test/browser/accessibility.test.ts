/** Rules of WCAG 2.2 that axe cannot check, or not on the pages as they open. */
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkPage, loaded, useConsole } from './console.ts';

const consoleOf = useConsole();
const { open } = consoleOf;
const LEAST_TARGET = 24;
const PROJECTS = 3;

beforeAll(async () => {
  const { yard } = consoleOf;
  for (let count = 1; count <= PROJECTS; count += 1)
    await yard.insist('POST', '/cloud/v1/projects', { name: `project-${count}` });
});

describe('the focus of the keyboard', () => {
  /** The text of the focused control, if none of its points is visible. */
  const coveredFocus = `(() => {
    const control = document.activeElement;
    const { left, right, top, bottom } = control.getBoundingClientRect();
    const points = [0.1, 0.5, 0.9].flatMap((x) => [0.1, 0.5, 0.9].map((y) => [x, y]));
    const isSeen = points.some(([x, y]) => {
      const hit = document.elementFromPoint(left + (right - left) * x, top + (bottom - top) * y);
      return hit !== null && (control.contains(hit) || hit.contains(control));
    });
    return isSeen ? null : control.textContent || control.ariaLabel;
  })()`;

  it.each([
    ['a low window', 1280, 400],
    ['a zoom of 400 %', 320, 256],
  ])('is not below the bar at the top when it moves back: %s', async (_, width, height) => {
    const page = await open('audit', { viewport: { width, height } });
    await page
      .getByRole('link', { name: 'createProject' })
      .nth(PROJECTS - 1)
      .waitFor();
    await loaded(page);
    await page.locator('main a').last().focus();
    const covered: unknown[] = [];
    const isInContent = () => page.evaluate<boolean>('document.activeElement.closest("main") !== null');
    for (; await isInContent(); await page.keyboard.press('Shift+Tab')) covered.push(await page.evaluate(coveredFocus));
    expect(covered.length).toBeGreaterThan(5);
    expect(covered.filter((text) => text !== null)).toEqual([]);
  });
});

describe('several failures at a zoom of 400 %', () => {
  it('can be read and dismissed, the newest one first', async () => {
    const page = await open('networks', { viewport: { width: 320, height: 256 } });
    await page.route('**/cloudyard/v1/session', (route) =>
      route.request().method() === 'DELETE' ? route.abort() : route.continue(),
    );
    await page.getByRole('button', { name: 'Account and settings' }).click();
    for (let count = 1; count <= 4; count += 1) {
      await page.getByRole('button', { name: 'Sign out' }).press('Enter');
      await page
        .locator('.toast')
        .nth(count - 1)
        .waitFor();
    }
    await page.keyboard.press('Escape');
    const newest = (await page.locator('.toast').last().boundingBox())!;
    expect(newest.y + newest.height).toBeLessThanOrEqual(256);
    const dismiss = page.locator('.toast').first().getByRole('button', { name: 'Dismiss' });
    await dismiss.scrollIntoViewIfNeeded();
    expect((await dismiss.boundingBox())!.y).toBeGreaterThanOrEqual(0);
  });
});

describe('a button that deletes', () => {
  it('has a readable text when it can be used, in light and dark', async () => {
    const page = await open('projects/2/delete');
    await page.getByRole('dialog').getByRole('textbox').fill('project-1');
    await page.getByRole('button', { name: 'Delete project', disabled: false }).waitFor();
    await checkPage(page);
  });
});

describe('checkboxes in a column', () => {
  it('are as far apart as a finger needs', async () => {
    const page = await open('tokens/new');
    const boxes = page.getByRole('group', { name: 'Projects' }).getByRole('checkbox');
    await boxes.nth(PROJECTS).waitFor();
    const middles = await middlesOf(page, boxes);
    const distances = middles.slice(1).map((y, index) => y - middles[index]!);
    expect(Math.min(...distances)).toBeGreaterThanOrEqual(LEAST_TARGET);
  });
});

async function middlesOf(page: Page, controls: ReturnType<Page['locator']>): Promise<number[]> {
  await loaded(page);
  const boxes = await Promise.all((await controls.all()).map((control) => control.boundingBox()));
  return boxes.map((box) => box!.y + box!.height / 2);
}

describe('the calendar of a lifecycle policy', () => {
  it('marks today for screen readers and in forced colors', async () => {
    const { yard } = consoleOf;
    const schedules = [{ type: 'interval', hours: 1, max_quantity: 2 }];
    const policy = { action: 'volume_snapshot', name: 'hourly', schedules };
    const { body } = await yard.insist('POST', '/cloud/v1/lifecycle_policy/1/1', policy);
    const page = await open(`lifecycle-policies/${body.id}?tab=calendar`, { forcedColors: 'active' });
    const today = page.locator('.calendar [aria-current=date] .day');
    await today.waitFor();
    const style = 'getComputedStyle(document.querySelector(".calendar [aria-current=date] .day"))';
    expect(await page.evaluate(`${style}.outlineStyle`)).toBe('solid');
    expect(await page.evaluate(`${style}.outlineColor`)).not.toMatch(/^rgba/);
  });
});
