/**
 * Checks a regular expression of an L7 rule with the engine that will run it: HAProxy reads a configuration with the
 * pattern alone and as l7-policies.ts uses it. The pattern alone must compile so that it cannot leave its group.
 *
 * Failure modes: only a pattern that HAProxy names as invalid is invalid. If HAProxy was killed, did not end in time or
 * failed in another way, the check throws a retryable DriverError. Without HAProxy on this machine (the simulated
 * driver, or an API server without workers) JavaScript's engine rejects what neither engine compiles.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runChild } from '../../platform/child-process.ts';
import { DriverError } from '../driver.ts';
import { findProgram } from '../programs.ts';
import { limited } from '../../platform/turns.ts';
import { WITHOUT_AUTHORITIES } from './configuration.ts';
import { boundedRegex } from './l7-policies.ts';
import { word } from './quote.ts';

/** Returns why a pattern cannot be used, or null. @throws DriverError without a verdict */
export type CheckPattern = (pattern: string) => Promise<string | null>;

interface PatternCheckOptions {
  /** The program; default: that of this machine. Null: not installed. */
  haproxy?: string | null;
  timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
const CONCURRENT = 2;
/** `regex '…' is invalid (error=missing closing parenthesis, erroffset=4)` */
const OBJECTION = /is invalid \(error=([^,)]+)/;

/** Runs at most two checks at a time, each for at most 5 s. */
export function createPatternCheck(options: PatternCheckOptions = {}): CheckPattern {
  const { haproxy = findProgram('haproxy'), timeoutMs = TIMEOUT_MS } = options;
  const turn = limited(CONCURRENT);
  return (pattern) => (haproxy ? turn(() => checkWith(haproxy, pattern, timeoutMs)) : checkWithout(pattern));
}

async function checkWith(haproxy: string, pattern: string, timeout: number): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), 'cloudyard-pattern-'));
  const file = join(folder, 'pattern.cfg');
  try {
    await writeFile(file, configurationFor(pattern), { mode: 0o600 });
    await runChild(haproxy, ['-c', '-f', file], { timeout, killSignal: 'SIGKILL', env: { LC_ALL: 'C' } });
    return null;
  } catch (cause) {
    const { stderr = '', code } = cause as { stderr?: string; code?: unknown };
    const objection = code === 1 ? OBJECTION.exec(stderr)?.[1] : undefined;
    if (objection) return objection;
    throw new DriverError(`HAProxy did not check a pattern: ${(cause as Error).message}`, {
      customerMessage: 'the regular expression could not be checked; try again',
      retryable: true,
      cause,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A check does not listen. */
function configurationFor(pattern: string): string {
  const acls = [pattern, boundedRegex(pattern)].map((each) => `  acl pattern path -m reg -- ${word('value', each)}\n`);
  return `global
  ${WITHOUT_AUTHORITIES}
defaults
  mode http
  timeout client 1s
  timeout connect 1s
  timeout server 1s
frontend pattern
  bind 127.0.0.1:1
${acls.join('')}  http-request deny if pattern
`;
}

/** Syntax of PCRE2 that JavaScript does not know: it cannot judge such a pattern. */
const ONLY_PCRE = /\(\?[^:=!<]|\(\*|\[\[:|\\[AzZGQEhHRKX]|[*+?}]\+|\(\?<?[^>=!]*>/;

async function checkWithout(pattern: string): Promise<string | null> {
  try {
    RegExp(pattern);
    return null;
  } catch (error) {
    if (ONLY_PCRE.test(pattern)) return null;
    return (error as Error).message.split(': ').at(-1) ?? 'invalid';
  }
}
