/** Reads settings from the environment and collects their errors, so that all are reported at once. */
import { isIP } from 'node:net';
import { resolve } from 'node:path';

/** Invalid settings. The message names each of them. */
export class SettingsError extends Error {}

/** A setting as `cloudyard help` and the documentation list it. */
export interface SettingDescription {
  name: string;
  /** Markdown: `8080` in backticks, or words such as `not set`. */
  default: string;
  /** Markdown. */
  meaning: string;
}

export interface SettingReader<Name extends string = string> {
  /** Undefined when the variable is absent or empty. */
  text(name: Name): string | undefined;
  /** `words`: numbers that have a name. */
  integer(name: Name, fallback: number, min: number, max: number, words?: Record<string, number>): number;
  choice<T extends string>(name: Name, choices: readonly T[], fallback: T): T;
  /** `1` or `0`. */
  flag(name: Name, fallback: boolean): boolean;
  /** An absolute path; a relative one starts at the checkout, or at the working directory of an installed package. */
  path(name: Name): string | undefined;
  /** A host name or an IP address. */
  host(name: Name): string | undefined;
  /** Records an error; `check` reports it. */
  reject(error: string): void;
  /** @throws SettingsError that names every invalid setting, one a line */
  check(): void;
}

const hostPattern = /^[a-z\d]([\w.-]{0,251}[a-z\d])?$/i;

/** Relative paths start at `base`. */
export function createSettingReader(env: Record<string, string | undefined>, base: string): SettingReader {
  const errors: string[] = [];
  const text = (name: string) => env[name] || undefined;
  const reject = (error: string) => void errors.push(error);
  const choice = <T extends string>(name: string, choices: readonly T[], fallback: T): T => {
    const given = text(name);
    if (given === undefined) return fallback;
    const found = choices.find((each) => each === given);
    if (found === undefined) reject(`${name} is ${JSON.stringify(given)}; it must be one of ${choices.join(', ')}`);
    return found ?? fallback;
  };
  return {
    text,
    reject,
    path(name) {
      const given = text(name);
      return given === undefined ? undefined : resolve(base, given);
    },
    host(name) {
      const given = text(name);
      if (given === undefined || isIP(given) !== 0 || hostPattern.test(given)) return given;
      reject(`${name} is ${JSON.stringify(given)}; it must be a host name or an IP address, without a port`);
      return undefined;
    },
    integer(name, fallback, min, max, words = {}) {
      const given = text(name);
      if (given === undefined) return fallback;
      // `Number` also reads white space, as 0, and other notations.
      const value = /^\s*\d+\s*$/.test(given) ? Number(given) : (words[given] ?? NaN);
      if (value >= min && value <= max) return value;
      const accepted = [...Object.keys(words), `a whole number from ${min} to ${max}`].join(' or ');
      reject(`${name} is ${JSON.stringify(given)}; it must be ${accepted}`);
      return fallback;
    },
    choice,
    flag: (name, fallback) => choice(name, ['0', '1'], fallback ? '1' : '0') === '1',
    check() {
      if (errors.length > 0) throw new SettingsError(errors.join('\n'));
    },
  };
}
