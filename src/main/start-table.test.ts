import { expect, it, onTestFinished, vi } from 'vitest';
import { checkoutPlaces } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';
import { printStart } from './start-table.ts';

/** The lines with URLs that a start on 127.0.0.1:8080 prints. */
function urlsOf(env: Record<string, string>): string[] {
  let printed = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  onTestFinished(() => spy.mockRestore());
  printStart({
    settings: readSettings(env, checkoutPlaces(process.cwd()), false),
    ...{ serves: true, isService: false, url: 'http://127.0.0.1:8080', token: null, database: 'a database' },
    ...{ work: null, deliveries: {}, loopbackRegions: [] },
  });
  return printed.split('\n').filter((line) => line.includes('http'));
}

it('without a public URL, all URLs are those of the address that the API listens on', () => {
  expect(urlsOf({})).toEqual([
    '  API        http://127.0.0.1:8080',
    '  Reference  http://127.0.0.1:8080/docs',
    '  Console    http://127.0.0.1:8080/console',
  ]);
});

it('the console and the reference are at the public URL', () => {
  expect(urlsOf({ CLOUDYARD_PUBLIC_URL: 'https://cloud.example.org/' })).toEqual([
    '  API        http://127.0.0.1:8080',
    '  Public     https://cloud.example.org',
    '  Reference  https://cloud.example.org/docs',
    '  Console    https://cloud.example.org/console',
  ]);
});
