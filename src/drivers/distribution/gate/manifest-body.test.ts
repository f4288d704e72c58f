import { expect, it } from 'vitest';
import { manifestBody } from './manifest-body.ts';

const digest = `sha256:${'a'.repeat(64)}`;

/** The problem of a body that arrives in two parts. */
function problemOf(content: unknown): string | null {
  const body = manifestBody();
  const bytes = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content));
  body.add(bytes.subarray(0, 5));
  body.add(bytes.subarray(5));
  return body.problem();
}

it.each([
  [{}, 'schemaVersion must be 2'],
  [null, 'schemaVersion must be 2'],
  [[], 'schemaVersion must be 2'],
  [{ schemaVersion: 1 }, 'schemaVersion must be 2'],
  [{ schemaVersion: 2, config: { digest: 'sha256:ab' } }, 'a digest is malformed'],
  [{ schemaVersion: 2, config: { digest: `sha999:${'a'.repeat(64)}` } }, 'a digest is malformed'],
  [{ schemaVersion: 2, config: { digest }, layers: [{ digest }, { digest: 'x' }] }, 'a digest is malformed'],
  [{ schemaVersion: 2, manifests: [{ digest: 'constructor:a' }] }, 'a digest is malformed'],
])('the problem of %j is that %s', (content, problem) => expect(problemOf(content)).toBe(problem));

it.each([
  [{ schemaVersion: 2, config: { digest }, layers: [{ digest: `sha512:${'b'.repeat(128)}` }] }],
  [{ schemaVersion: 2, manifests: [{ digest }, null] }],
  ['{"schemaVersion":'],
  [''],
  // Too large to be checked.
  [{ annotations: { text: 'x'.repeat(256 * 1024) } }],
])('a server error is passed on for another body: %#', (content) => expect(problemOf(content)).toBeNull());
