import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkedUrl, contextsFile, readContexts, targetOf, writeContexts } from './contexts.ts';

let folder: string;
let env: Record<string, string>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cloudyard-contexts-'));
  env = { XDG_CONFIG_HOME: folder };
});
afterEach(() => rmSync(folder, { recursive: true }));

const one = { url: 'http://one.example', token: 'first', project: '3' };
const two = { url: 'http://two.example', token: 'second' };

describe('the file of contexts', () => {
  it('is readable by its owner only, whatever it was', () => {
    const file = contextsFile(env);
    writeContexts(file, { current: 'one', contexts: { one } });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
    expect(readContexts(file)).toEqual({ current: 'one', contexts: { one } });
    chmodSync(file, 0o640);
    expect(() => readContexts(file)).toThrow(
      `${file} contains tokens and is accessible to other users; change its mode to 600`,
    );
  });

  it.each(['{', '[]', '{"contexts": null}'])('is refused with %j in it', (text) => {
    const file = contextsFile(env);
    mkdirSync(dirname(file));
    writeFileSync(file, text, { mode: 0o600 });
    expect(() => readContexts(file)).toThrow(`${file} is not valid`);
  });
});

describe('targetOf', () => {
  beforeEach(() => writeContexts(contextsFile(env), { current: 'one', contexts: { one, two } }));

  it('prefers options to the environment, and the environment to the current context', () => {
    expect(targetOf({}, env)).toEqual({ ...one, region: '1' });
    expect(targetOf({}, { ...env, CLOUDYARD_CONTEXT: 'two' })).toMatchObject({ url: two.url, project: '1' });
    const other = { ...env, CLOUDYARD_CONTEXT: 'one', CLOUDYARD_PROJECT: '5', CLOUDYARD_REGION: '6' };
    expect(targetOf({}, other)).toEqual({ ...one, project: '5', region: '6' });
    // The project of the environment is one of another server.
    expect(targetOf({ context: 'two', region: '7' }, other)).toEqual({ ...two, project: '1', region: '7' });
    expect(targetOf({}, { ...env, CLOUDYARD_PROJECT: '', CLOUDYARD_REGION: '' })).toEqual({ ...one, region: '1' });
    const given = { ...env, CLOUDYARD_URL: 'http://third.example', CLOUDYARD_TOKEN: 'third' };
    expect(targetOf({}, given)).toMatchObject({ url: 'http://third.example', token: 'third', project: '1' });
    expect(targetOf({ context: 'two' }, given)).toMatchObject(two);
  });

  it('does not send the token of a context to CLOUDYARD_URL', () => {
    expect(targetOf({}, { ...env, CLOUDYARD_URL: 'http://third.example' }).token).toBeUndefined();
  });

  it('names what is missing', () => {
    expect(() => targetOf({ context: 'none' }, env)).toThrow('context none not found; known: one, two');
    expect(() => targetOf({}, { XDG_CONFIG_HOME: join(folder, 'empty') })).toThrow('no server: run');
  });
});

describe('checkedUrl', () => {
  it.each([
    ['http://a.example/', 'http://a.example'],
    ['https://a.example:8443/under/', 'https://a.example:8443/under'],
  ])('of %s is %s', (text, url) => expect(checkedUrl(text)).toBe(url));

  it.each(['a.example', 'ftp://a.example', 'http://u:p@a.example', 'http://a.example/?x=1'])('refuses %s', (text) => {
    expect(() => checkedUrl(text)).toThrow('URL');
  });
});
