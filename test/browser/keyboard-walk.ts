/** Drives the console with the keyboard alone. */
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { loaded } from './console.ts';

/** The label of a control, and what is typed there: text, the label of an option, `space` to mark it or `enter` to press it. */
type Fields = Readonly<Record<string, string>>;
/** Path below the project and region, the button that sends, the fields, and a text that the dialog shows if it stays open. */
export type Form = readonly [path: string, submit: string, fields: Fields, stays?: string];

/** More than the controls of the longest form. */
const MAX_TABS = 90;

/** Without the mark of an optional field. */
const LABEL =
  '(() => { const e = document.activeElement;' +
  ' const text = e.labels?.[0]?.innerText ?? e.getAttribute("aria-label") ?? e.innerText;' +
  ' return text.replace("(optional)", "").replace(/\\s+/g, " ").trim().slice(0, 120) })()';
const IS_SELECT = 'document.activeElement instanceof HTMLSelectElement';
const SELECTED = 'document.activeElement.selectedOptions[0]?.text ?? ""';
/** Longer than the pause after which Chromium takes a key for the start of another word. */
const NEXT_WORD_MS = 1_200;

async function type(page: Page, text: string): Promise<void> {
  if (text === 'space') return page.keyboard.press('Space');
  if (text === 'enter') return page.keyboard.press('Enter');
  if (await page.evaluate(IS_SELECT)) return choose(page, text);
  await page.keyboard.press('Control+A');
  // Long text is pasted.
  await (text.includes('\n') ? page.keyboard.insertText(text) : page.keyboard.type(text));
}

/** Types the start of an option, again if the options were not there yet or the machine stalled between two keys. */
async function choose(page: Page, text: string): Promise<void> {
  const typeAndRead = async () => {
    await page.keyboard.type(text);
    return page.evaluate<string>(SELECTED);
  };
  const isChosen = (option: string) => option.toLowerCase().startsWith(text.toLowerCase());
  await expect.poll(typeAndRead, { interval: NEXT_WORD_MS }).toSatisfy(isChosen);
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
const isChange = (method: string, url: string) =>
  method === 'GET' ? url.includes('/authorize/') : !/pricing|preview|estimate/.test(url);

/** As a link does, without loading the console again. */
async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState({}, '', ${JSON.stringify(`/console/p/1/r/1/${path}`)})`);
}

/** Why the form could not be sent, or null. */
export async function send(page: Page, [path, submit, fields, stays]: Form): Promise<string | null> {
  const button = page.locator('dialog[open] button[type=submit]');
  try {
    await goTo(page, path);
    await button.waitFor();
    await loaded(page);
    const [response] = await Promise.all([
      page.waitForResponse((answer) => isChange(answer.request().method(), answer.url())),
      walk(page, submit, fields),
    ]);
    if (!response.ok()) return `${path}: ${response.status()} ${await response.text()}`;
    // It opens another page, or shows a secret.
    await (stays === undefined ? button.waitFor({ state: 'detached' }) : page.getByText(stays).waitFor());
    return null;
  } catch (error) {
    return `${path}: ${String(error)} ${(await page.getByRole('alert').allInnerTexts()).join(' ')}`;
  }
}

/** More than the links and buttons before one in the page. */
const MAX_TABS_OF_PAGE = 300;

/** Tabs from the start of the page to the button with this label, and presses it. Returns why that did not work, or null. */
export async function press(page: Page, path: string, label: string): Promise<string | null> {
  try {
    await goTo(page, path);
    await page.getByRole('button', { name: label, exact: true }).first().waitFor();
    await loaded(page);
    await page.evaluate('document.activeElement.blur()');
    for (let tabs = 0; tabs < MAX_TABS_OF_PAGE; tabs++) {
      await page.keyboard.press('Tab');
      if ((await page.evaluate<string>(LABEL)) !== label) continue;
      const [response] = await Promise.all([
        page.waitForResponse((answer) => isChange(answer.request().method(), answer.url())),
        page.keyboard.press('Enter'),
      ]);
      return response.ok() ? null : `${path}: ${response.status()} ${await response.text()}`;
    }
    return `${path}: Tab does not reach ${label}`;
  } catch (error) {
    return `${path}: ${String(error)}`;
  }
}
