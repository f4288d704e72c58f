/**
 * One context of Chromium for most tests of a process. A new one has a new process, which compiles the console and the scripts of
 * Playwright again: a quarter of the CPU time of a page.
 *
 * Invariant: each test gets it without the pages, cookies and storage of another one. It keeps only cached files and compiled
 * code, so a test about a part that is not loaded yet needs a context of its own.
 */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { until } from '../until.ts';

export interface KeptContext {
  readonly context: BrowserContext;
  newPage(): Promise<Page>;
  /** Removes everything that a test has left at this origin. @throws if something remains */
  empty(origin: string): Promise<void>;
}

/** Pages of one site share a process. */
export const keptContextFlag = '--process-per-site';

const stored = `Promise.all([Object.keys(localStorage), indexedDB.databases(), caches.keys()])
  .then((found) => found.flat().length)`;

export async function openKeptContext(browser: Browser, options: BrowserContextOptions): Promise<KeptContext> {
  const context = await browser.newContext(options);
  // The process ends with its last page, so an empty page of the same site stays open.
  const keeper = await context.newPage();
  // In the same group of pages as those of the console, which have this header.
  const headers = { 'cross-origin-opener-policy': 'same-origin' };
  await keeper.route('**', (route) => route.fulfill({ contentType: 'text/html', headers, body: '' }));
  const devtools = await context.newCDPSession(keeper);
  return {
    context,
    async newPage() {
      // A page without an opener starts in a process of its own, which its first navigation ends: a fifth of the CPU time of a page.
      const [page] = await Promise.all([keeper.waitForEvent('popup'), keeper.evaluate("void open('about:blank')")]);
      return page;
    },
    async empty(origin) {
      for (const page of context.pages()) if (page !== keeper) await page.close();
      await context.setOffline(false);
      if (!keeper.url().startsWith(`${origin}/`)) await keeper.goto(origin);
      // Again if a response that was on its way when its page was closed has set a cookie.
      const isEmpty = async () => {
        await context.clearCookies();
        await devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' });
        return (await context.cookies()).length + (await keeper.evaluate<number>(stored)) === 0;
      };
      await until(isEmpty, 10, 'a browser without the data of a test');
    },
  };
}
