/**
 * The console in Debian's Chromium, on a Cloudyard with simulated drivers in development mode. One server for a test file, one
 * browser for all files of a process (kept-context.ts); each test gets a page that is signed in.
 *
 * Every page fails its test at the end when it sent a request to another origin, threw or logged an error, such as
 * a breach of the Content-Security-Policy.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { type KeptContext, keptContextFlag, openKeptContext } from './kept-context.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** CI machines are slow and shared. */
const TIMEOUT_MS = 30_000;

interface Console {
  readonly yard: Yard;
  /** Opens a page of the first project and region, signed in with the token (default: the operator's). */
  open(path: string, options?: OpenOptions): Promise<Page>;
  /** A page that is not signed in, at this path below `/console`. */
  visit(path: string, options?: VisitOptions): Promise<Page>;
  /** Stops the server and starts it again, with the same database and port. */
  restart(): Promise<void>;
  /** Kills the server with SIGKILL, and starts it again with the same database and port. */
  crash(whileDown?: () => Promise<void>): Promise<void>;
}

interface VisitOptions extends BrowserContextOptions {
  /** Default: that of the server. */
  readonly origin?: string;
  /** An origin to which the page may go, too. */
  readonly otherOrigin?: string;
  /** In a context that has loaded nothing yet. Also the second page of a test, and pages with options other than `viewport`, have their own. */
  readonly ownContext?: boolean;
}

interface OpenOptions extends VisitOptions {
  readonly token?: string;
}

/** Ends with this process. */
let launched: Promise<{ browser: Browser; kept: KeptContext }> | undefined;

// Without animations: Chromium draws each frame of a spinner on the CPU.
const defaults: BrowserContextOptions = { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' };

/** Without the interface of a desktop browser: opening a page takes a third of the CPU time. */
async function launch(): Promise<{ browser: Browser; kept: KeptContext }> {
  const executablePath = process.env['CLOUDYARD_TEST_CHROMIUM'] ?? '/usr/bin/chromium-headless-shell';
  // Root cannot use the sandbox of Chromium.
  const args = [keptContextFlag, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];
  const browser = await chromium.launch({ executablePath, args });
  return { browser, kept: await openKeptContext(browser, defaults) };
}

/** `settingsOf`: settings that depend on the URL of the server. */
export function useConsole(
  settings: Record<string, string> = {},
  settingsOf: (yard: Yard) => Promise<Record<string, string>> = async () => ({}),
): Console {
  let yard: Yard;
  let running: Running;
  let browser: Browser;
  let kept: KeptContext;
  let pages: { page: Page; errors: string[] }[] = [];
  beforeAll(async () => {
    const simulated = { CLOUDYARD_CONSOLE: '1', CLOUDYARD_DEV: '1', CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' };
    yard = await openYard({ ...simulated, ...settings });
    Object.assign(yard.env, await settingsOf(yard));
    running = await yard.start(['start']);
    ({ browser, kept } = await (launched ??= launch()));
    await kept.empty(yard.url);
  });
  afterEach(async () => {
    const opened = pages;
    pages = [];
    const errors = opened.flatMap((each) => each.errors);
    for (const { page } of opened) if (page.context() !== kept.context) await page.context().close();
    await kept.empty(yard.url);
    expect(errors).toEqual([]);
  });
  afterAll(async () => {
    yard?.cleanUp();
  });
  const goTo = async (
    path: string,
    { origin = yard.url, otherOrigin = origin, ownContext, viewport, ...options }: VisitOptions,
    token?: string,
  ) => {
    // A second page of a test is that of another person.
    const isFirst = pages.every((each) => each.page.context() !== kept.context);
    const isOrdinary = isFirst && !ownContext && otherOrigin === yard.url && Object.keys(options).length === 0;
    const context = isOrdinary ? kept.context : await browser.newContext({ ...defaults, ...options });
    context.setDefaultTimeout(TIMEOUT_MS);
    if (token !== undefined) await context.request.post(`${origin}/cloudyard/v1/session`, { data: { token } });
    const page = await (isOrdinary ? kept.newPage() : context.newPage());
    if (viewport) await page.setViewportSize(viewport);
    pages.push({ page, errors: errorsOf(page, [origin, otherOrigin]) });
    const response = await page.goto(`${origin}/console${path}`);
    if (response?.status() !== 200) throw new Error(`the console is not served: ${await response?.text()}`);
    return page;
  };
  return {
    get yard() {
      return yard;
    },
    visit: (path, options = {}) => goTo(path, options),
    async restart() {
      await running.stop();
      running = await yard.start(['start']);
    },
    async crash(whileDown = async () => {}) {
      await running.kill();
      await whileDown();
      running = await yard.start(['start']);
    },
    async open(path, { token = bootstrapToken, ...options } = {}) {
      // Without the sign-in form, which takes 0.3 s of CPU time.
      const page = await goTo(`/p/1/r/1/${path}`, options, token);
      await page.locator('.frame').waitFor();
      return page;
    },
  };
}

/** Sends the sign-in form of the page. */
export async function signIn(page: Page): Promise<void> {
  await page.getByLabel('API token').fill(bootstrapToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Creates a token of this role for the first client. */
export async function newToken(yard: Yard, role: string): Promise<string> {
  const { body } = await yard.insist('POST', '/cloudyard/v1/tokens', { name: role, role });
  return body.token;
}

function errorsOf(page: Page, origins: readonly string[]): string[] {
  const errors: string[] = [];
  page.on('request', (request) => {
    const url = request.url();
    const isOwn = origins.some((origin) => url.startsWith(`${origin}/`));
    if (!isOwn && !url.startsWith('data:')) errors.push(`request to ${url}`);
  });
  page.on('pageerror', (error) => errors.push(`exception: ${error.message}`));
  page.on('console', (message) => {
    // Chromium reports each response with an error status, which the console expects (a wrong token, a conflict).
    const isResponse = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isResponse) errors.push(message.text());
  });
  return errors;
}

/** Waits until the page shows its data. */
export async function loaded(page: Page): Promise<void> {
  await expect.poll(() => page.locator('main :is(.skeleton, .state .spinner), [aria-busy=true]').count()).toBe(0);
}

/** Waits until the page has its final colors: Chromium applies another color scheme with its next frame. */
async function waitForAnimations(page: Page): Promise<void> {
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  const animations =
    'document.getAnimations().map(({ transitionProperty, animationName }) => transitionProperty ?? animationName)';
  await expect.poll(() => page.evaluate(animations)).toEqual([]);
}

/** In dark only the rules about colors, in 95 ms instead of 157 ms: nothing else differs from light (pages.test.ts). */
const rulesOf = { light: {}, dark: { runOnly: ['color-contrast', 'link-in-text-block'] } };

/** Asserts that axe finds nothing, in light and in dark. */
export async function checkPage(page: Page): Promise<void> {
  await loaded(page);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await waitForAnimations(page);
    if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(axe);
    const violations = await page.evaluate(async (rules) => {
      const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } };
      // Reports on what passes take two thirds of the time.
      const { violations } = await axe.run({ resultTypes: ['violations'], ...rules });
      return violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`,
      );
    }, rulesOf[colorScheme]);
    expect({ colorScheme, violations }).toEqual({ colorScheme, violations: [] });
  }
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}
