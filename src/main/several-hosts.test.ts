import { expect, it } from 'vitest';
import { checkoutPlaces } from '../platform/program-files.ts';
import { SettingsError } from '../platform/setting-reader.ts';
import { readSettings } from './settings.ts';
import { requireAgentSettings } from './several-hosts.ts';

const settings = (env: Record<string, string>) => readSettings(env, checkoutPlaces('/nowhere'), false);

it('an agent names every setting that it lacks', () => {
  expect(() => requireAgentSettings(settings({ CLOUDYARD_HOST_NAME: 'h1' }))).toThrow(
    /DATABASE_URL\n.*CLOUDYARD_HOST_ADDRESS\n.*\/nowhere\/data\/secret\.keys .*CLOUDYARD_KEY_FILE$/,
  );
});

const given = { DATABASE_URL: 'postgres://h/d', CLOUDYARD_HOST_NAME: 'h1', CLOUDYARD_HOST_ADDRESS: '10.0.0.1' };

it.each([
  ['is not repeated without a setting', { ...given, DATABASE_URL: '' }, true],
  ['is repeated until it has a key file', given, false],
])('the start of an agent %s', (_when, env, isFinal) => {
  const error = (() => {
    try {
      requireAgentSettings(settings(env));
      return null;
    } catch (thrown) {
      return thrown;
    }
  })();
  expect([error instanceof Error, error instanceof SettingsError]).toEqual([true, isFinal]);
});

it('an agent with a database, an address and a key file can run', () => {
  expect(() => requireAgentSettings(settings({ ...given, CLOUDYARD_KEY_FILE: '/etc/hostname' }))).not.toThrow();
});
