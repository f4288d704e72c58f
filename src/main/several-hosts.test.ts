import { expect, it } from 'vitest';
import { checkoutPlaces } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';
import { requireAgentSettings } from './several-hosts.ts';

const settings = (env: Record<string, string>) => readSettings(env, checkoutPlaces('/nowhere'), false);

it('an agent names every setting that it lacks', () => {
  expect(() => requireAgentSettings(settings({ CLOUDYARD_HOST_NAME: 'h1' }))).toThrow(
    /DATABASE_URL\n.*CLOUDYARD_HOST_ADDRESS\n.*\/nowhere\/data\/secret\.keys .*CLOUDYARD_KEY_FILE$/,
  );
});

it('an agent with a database, an address and a key file can run', () => {
  const given = { DATABASE_URL: 'postgres://h/d', CLOUDYARD_HOST_NAME: 'h1', CLOUDYARD_HOST_ADDRESS: '10.0.0.1' };
  expect(() => requireAgentSettings(settings({ ...given, CLOUDYARD_KEY_FILE: '/etc/hostname' }))).not.toThrow();
});
