/** The reference page in a real browser, which is driven by the Chrome DevTools Protocol. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { useCloudyard } from './harness.ts';
import { requires, skipReason } from './requires.ts';

const runs = requires('chromium-headless-shell', 'curl');
const skip = skipReason('chromium-headless-shell', 'curl');
const cloud = useCloudyard({ driver: null });

interface Event {
  method: string;
  params: { request: { url: string }; type?: string; entry: { level: string; text: string } };
}

/** A page of a headless browser, and its events so far. */
interface Page {
  events: Event[];
  open(url: string): Promise<void>;
  /** The value of a JavaScript expression. */
  evaluate<Value>(expression: string): Promise<Value>;
  close(): Promise<void>;
}

async function openBrowser(): Promise<Page> {
  const profile = mkdtempSync(join(tmpdir(), 'cloudyard-chromium-'));
  // Root cannot use the sandbox.
  const options = ['--no-sandbox', '--disable-gpu', '--remote-debugging-port=0'];
  // The command in PATH is a script that starts it, and a kill would end the script alone.
  const browser = spawn('/usr/lib/chromium/chromium-headless-shell', [...options, `--user-data-dir=${profile}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(browser, 'exit');
  const socket = new WebSocket(await debuggingUrl(browser));
  await once(socket, 'open');
  const answers = new Map<number, (result: never) => void>();
  const events: Event[] = [];
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data));
    if (message.id === undefined) events.push(message);
    else answers.get(message.id)?.(message.result as never);
  });
  const send = <Result>(method: string, params: object = {}, sessionId?: string): Promise<Result> =>
    new Promise((resolve) => {
      const id = answers.size + 1;
      answers.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params, sessionId }));
    });
  const { targetId } = await send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true });
  for (const domain of ['Network', 'Runtime', 'Log']) await send(`${domain}.enable`, {}, sessionId);
  return {
    events,
    open: (url) => send('Page.navigate', { url }, sessionId),
    async evaluate(expression) {
      const options = { expression, returnByValue: true };
      return (await send<{ result: { value: never } }>('Runtime.evaluate', options, sessionId)).result.value;
    },
    async close() {
      browser.kill('SIGKILL');
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

function debuggingUrl({ stderr }: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    stderr!.on('data', (part) => {
      text += part;
      const [url] = /ws:\/\/\S+/.exec(text) ?? [];
      if (url) resolve(url);
    });
  });
}

describe.skipIf(!runs)(skip ?? 'the reference page in a browser', () => {
  let page: Page;
  let origin: string;
  const text = () => page.evaluate<string>('document.body.innerText');
  const example = () =>
    page.evaluate<string | undefined>(
      `[...document.querySelectorAll('pre')].map((each) => each.innerText).find((each) => /curl.*projects[?']/.test(each))`,
    );

  beforeAll(async () => {
    origin = await cloud.app.listen({ host: '127.0.0.1', port: 0 });
    page = await openBrowser();
    await page.open(`${origin}/docs/#tag/projects/GET/cloud/v1/projects`);
    await vi.waitFor(async () => expect(await example()).toBeTruthy(), { timeout: 30_000, interval: 200 });
  });
  afterAll(() => page?.close());

  it('shows the introduction', async () => {
    expect(await page.evaluate('document.title')).toBe('Cloudyard API reference');
    const shown = await text();
    for (const heading of ['Authentication', 'Tasks', 'Errors', 'Idempotency', 'Paging', 'Dates and units']) {
      expect(shown).toContain(`${heading}\n`);
    }
    expect(shown).toContain('apikey <token>');
  });

  it('has examples that run as they are, with a token', async () => {
    const command = (await example())!.replace('<token>', cloud.admin);
    expect(command).toContain(origin);
    const { stdout } = await promisify(execFile)('sh', ['-c', command]);
    expect(JSON.parse(stdout)).toMatchObject({ count: 1 });
  });

  it('sends requests to this server only, and logs no error', async () => {
    const urls = page.events
      .filter(({ method }) => method === 'Network.requestWillBeSent')
      .map(({ params }) => params.request.url);
    expect(urls).toContain(`${origin}/openapi.json`);
    expect(urls.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([]);
    const errors = page.events.filter(
      ({ method, params }) =>
        method === 'Runtime.exceptionThrown' ||
        (method === 'Runtime.consoleAPICalled' && params.type === 'error') ||
        (method === 'Log.entryAdded' && params.entry.level === 'error'),
    );
    expect(errors).toEqual([]);
  });
});
