/** The check of regular expressions, by HAProxy and without it. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { nestedRepetition } from '../nested-repetition.ts';
import { createPatternCheck } from './pattern-check.ts';

const valid = ['^/api/v[0-9]+/', String.raw`\.(jpg|png)$`, '(?i)shop', 'a{1,200}', "it's", 'a  b', '[)(]', '(?>a+)b'];
const invalid = ['(', 'a)', '[a', 'a**', '(?<n', 'a)|(?:b', '(?P=x)', '*'];
/** They compile alone, but would leave the limits of the search. */
const escaping = ['(*NO_JIT)a', '(*LIMIT_MATCH=1000000)a', '(?x)a#', String.raw`\Qa`, String.raw`(a)\1`];

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-checker-'));
const program = (name: string, script: string) => {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
};
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(!requires('haproxy'))(skipReason('haproxy') ?? 'with HAProxy', () => {
  const check = createPatternCheck();
  it.each(valid)('accepts %s', async (pattern) => expect(await check(pattern)).toBeNull());
  it.each([...invalid, ...escaping])('refuses %s with a reason', async (pattern) => {
    expect(await check(pattern)).toMatch(/^[a-zA-Z(\\]/);
  });
});

describe('a checker that gives no verdict', () => {
  it.each([
    ['is killed', 'kill -9 $$'],
    ['does not end', 'exec sleep 60'],
    ['fails for another reason', 'echo "cannot allocate memory" >&2; exit 1'],
    ['is missing', ''],
  ])('is a retryable failure if it %s', async (name, script) => {
    const haproxy = script ? program(name.replaceAll(' ', '-'), script) : join(folder, 'missing');
    await expect(createPatternCheck({ haproxy, timeoutMs: 500 })('a')).rejects.toMatchObject({ retryable: true });
  });
});

describe('without HAProxy', () => {
  const check = createPatternCheck({ haproxy: null });
  it.each(valid)('accepts %s', async (pattern) => expect(await check(pattern)).toBeNull());
  it.each(['(', 'a)', '[a', 'a**', '*'])('refuses %s', async (pattern) => expect(await check(pattern)).not.toBeNull());
});

describe('a nested repetition', () => {
  it.each([
    ['^(a+)+$', '(a+)+'],
    ['(.*)*x', '(.*)*'],
    [String.raw`(\w+\s*)+`, String.raw`(\w+\s*)+`],
    ['((a+)b?)*', '((a+)b?)*'],
    ['(?:x|[a-z]*)+', '(?:x|[a-z]*)+'],
    ['(a{2,}){3,}', '(a{2,}){3,}'],
    ['x((b+)*)y', '(b+)*'],
  ])('is found in %s', (pattern, found) => expect(nestedRepetition(pattern)).toBe(found));

  it.each([
    String.raw`^([a-z]+\.)+example\.com$`,
    '^(/[^/]+)*$',
    '(a+){2}',
    '(a+)?',
    '(a|b)+',
    String.raw`\(a+\)+`,
    '[(a+)]+',
    '(a++)+',
    '(a?){5}',
    'a+b+c*',
    '(',
    '(((',
    ')+',
    '[',
  ])('is not found in %s', (pattern) => expect(nestedRepetition(pattern)).toBeNull());
});
