/**
 * The console in Chromium: first paint, time until a list is usable, and frames while scrolling. Browser and server share the
 * machine; simulated drivers.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { root } from '../src/platform/program-files.ts';
import type { Db } from '../src/platform/db.ts';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { findProgram } from './programs.ts';
import { openServices } from './services.ts';
import { liftQuotas, newShare, seedShares, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const rounds = 7;
const shares = 1_000;
const tasks = 10_000;
/** A frame of a screen with 60 Hz, and the inaccuracy of its time. */
const frameMs = 1000 / 60 + 1;
const scrollMs = 2000;

interface Load {
  firstPaintMs: number;
  usableMs: number;
}

export async function consoleInBrowser(workplace: Workplace): Promise<Row[]> {
  const executablePath =
    process.env['CLOUDYARD_TEST_CHROMIUM'] ?? findProgram('chromium-headless-shell') ?? findProgram('chromium');
  if (!executablePath) return [{ what: 'console', why: 'skipped: chromium-headless-shell is not installed' }];
  execFileSync(process.execPath, [join(root, 'bin', 'console-build.mjs')], { cwd: root, stdio: 'ignore' });
  const cloudyard = await startCloudyard(workplace, { command: 'start', settings: { CLOUDYARD_CONSOLE: '1' } });
  await liftQuotas(cloudyard);
  const { db } = await openServices(workplace, cloudyard);
  await seedTasks(db, cloudyard);
  await seedShares(db, cloudyard, 1, shares);
  // Root cannot use the sandbox of Chromium.
  const browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });
  workplace.closing(() => browser.close());
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await signIn(context, cloudyard);

  const listOfShares = await loads(context, `${cloudyard.url}/console/p/1/r/1/file-shares`);
  const listOfTasks = await loads(context, `${cloudyard.url}/console/p/1/r/1/tasks`);
  const lastTasks = await loads(context, `${cloudyard.url}/console/p/1/r/1/tasks?page=${tasks / 50}`);
  const longFrames = await scroll(context, `${cloudyard.url}/console/p/1/r/1/file-shares`);
  const ms = (what: string, values: number[], atMost: number): Row => ({ what, values, unit: 'ms', bar: { atMost } });
  const list = `${shares.toLocaleString('en-US')} shares`;
  const ofTasks = `${tasks.toLocaleString('en-US')} tasks`;
  return [
    ms(
      `console: first contentful paint, list of ${list}`,
      listOfShares.map((each) => each.firstPaintMs),
      500,
    ),
    ms(
      `console: list of ${list} usable`,
      listOfShares.map((each) => each.usableMs),
      1000,
    ),
    ms(
      `console: list of ${ofTasks} usable`,
      listOfTasks.map((each) => each.usableMs),
      1000,
    ),
    ms(
      `console: last page of ${ofTasks} usable`,
      lastTasks.map((each) => each.usableMs),
      1000,
    ),
    {
      what: `console: frames longer than ${Math.round(frameMs)} ms / all, scrolling the list of ${list}`,
      values: longFrames,
      unit: 'ratio',
      bar: { atMost: 0.05 },
    },
  ];
}

/** A task of a create, and copies of it. */
async function seedTasks(db: Db, cloudyard: Cloudyard): Promise<void> {
  const { tasks: ids } = await cloudyard.request('POST', sharesPath, await newShare(cloudyard));
  await cloudyard.request('GET', `/cloud/v1/tasks/${ids[0]}?wait=30`);
  await db.$client.query(
    `insert into tasks select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()))).*
     from tasks t, generate_series(1, $2::int) where t.id = $1`,
    [ids[0], tasks],
  );
  await db.$client.query('vacuum analyze tasks');
}

async function signIn(context: BrowserContext, { url, headers }: Cloudyard): Promise<void> {
  const page = await context.newPage();
  await page.goto(`${url}/console`);
  await page.getByLabel('API token').fill(headers['authorization']!);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('.frame').waitFor();
  await page.close();
}

/** Opens the page `rounds` times, after a first time that fills the cache of the browser. */
async function loads(context: BrowserContext, url: string): Promise<Load[]> {
  const found: Load[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const page = await context.newPage();
    await page.addInitScript(recordFirstRow);
    await page.goto(url);
    const load = (await page.evaluate('loaded')) as Load;
    if (round > 0) found.push(load);
    await page.close();
  }
  return found;
}

/** Runs in the page: resolves in the frame after the first row of a table was shown. */
const recordFirstRow = `
  globalThis.loaded = new Promise((done) => {
    let usableMs = 0;
    const poll = () => {
      if (usableMs === 0 && document.querySelector('main tbody tr a')) usableMs = performance.now();
      const [paint] = performance.getEntriesByName('first-contentful-paint');
      if (usableMs > 0 && paint) done({ firstPaintMs: paint.startTime, usableMs });
      else requestAnimationFrame(poll);
    };
    requestAnimationFrame(poll);
  });`;

/** The share of long frames while the page scrolls down and up, in each round. */
async function scroll(context: BrowserContext, url: string): Promise<number[]> {
  const page: Page = await context.newPage();
  await page.goto(url);
  await page.locator('main tbody tr a').first().waitFor();
  const found: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const frames = (await page.evaluate(`new Promise((done) => {
      const frames = [];
      const began = performance.now();
      let before = began, down = true;
      const step = (now) => {
        frames.push(now - before);
        before = now;
        const { scrollTop, scrollHeight, clientHeight } = document.scrollingElement;
        if (scrollTop + clientHeight >= scrollHeight - 1) down = false;
        else if (scrollTop === 0) down = true;
        scrollBy(0, down ? 40 : -40);
        if (now - began < ${scrollMs}) requestAnimationFrame(step);
        else done(frames.slice(1));
      };
      requestAnimationFrame(step);
    })`)) as number[];
    found.push(frames.filter((ms) => ms > frameMs).length / frames.length);
  }
  await page.close();
  return found;
}
