/** Secrets and their hashes are compared by `platform/crypto.ts` only, in a time that does not depend on their contents. */
import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const secret = String.raw`[\w.?!()]*(?:secret|password|signature|hmac|csrf|tokenHash|secretHash)\w*(?:\(\w*\))?`;
const literal = String.raw`null|undefined|true|false|''|'[\w-]*'|\d+|typeof`;
const comparison = new RegExp(
  String.raw`(?<!typeof )\b${secret}\)? [!=]== (?!${literal})|(?<!${literal}) [!=]== (?!${literal})${secret}\b(?!\.(?:length|id)\b)`,
  'i',
);
/** The owner sends the password, and reads the stored one with `dockerconfigjson`. */
const owned = ['src/resources/pull-secrets/service.ts: return passwordOf(secret) !== password;'];

it('no module compares secrets with === or !==', () => {
  const files = globSync('src/**/*.ts').filter((file) => !/\.test\.ts$|\/test-/.test(file));
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => comparison.test(line) && !line.trim().startsWith('*'))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(found).toEqual(owned);
});

it.each(['if (row.secretHash === hash) return;', 'return given !== session.csrf;', 'signature === expected'])(
  'the scan finds %s',
  (line) => expect(comparison.test(line)).toBe(true),
);

it('the comparison of platform/crypto.ts takes constant time', () => {
  expect(readFileSync('src/platform/crypto.ts', 'utf8')).toContain('timingSafeEqual(a, b)');
});
