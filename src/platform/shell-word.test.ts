import { expect, it } from 'vitest';
import { shellWord } from './shell-word.ts';

it.each([
  ['/etc/cloudyard/secret.keys', '/etc/cloudyard/secret.keys'],
  ['/srv/my data', "'/srv/my data'"],
  ["/srv/Ann's", String.raw`'/srv/Ann'\''s'`],
  ['$HOME', "'$HOME'"],
  ['', "''"],
])('%s is the word %s', (text, word) => {
  expect(shellWord(text)).toBe(word);
});
