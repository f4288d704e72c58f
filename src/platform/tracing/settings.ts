/** The settings of traces. */
import type { CoreSettingName } from '../setting-meanings.ts';
import type { SettingReader } from '../setting-reader.ts';

/** Null without CLOUDYARD_OTLP_ENDPOINT. */
export function readTracingSettings(reader: SettingReader<CoreSettingName>) {
  const { text, integer, reject } = reader;
  const ratio = integer('CLOUDYARD_TRACE_PERCENT', 100, 1, 100) / 100;
  const headers = (text('CLOUDYARD_OTLP_HEADERS') ?? '').split(',').flatMap((part) => {
    if (part.trim() === '') return [];
    const [, name, value] = /^\s*([\w-]+)\s*=\s*([\x20-\x7e]*?)\s*$/.exec(part) ?? [];
    // The value may be a secret.
    if (name === undefined) reject('CLOUDYARD_OTLP_HEADERS must be of the form name=value,name=value');
    return name === undefined ? [] : [[name.toLowerCase(), value!] as const];
  });
  const endpoint = text('CLOUDYARD_OTLP_ENDPOINT');
  if (endpoint === undefined) return null;
  if (!URL.canParse(endpoint) || !/^https?:\/\/[^?#]+$/.test(endpoint)) {
    reject('CLOUDYARD_OTLP_ENDPOINT must be a URL such as http://127.0.0.1:4318');
  }
  return {
    /** Base URL of the collector. */
    endpoint,
    headers: Object.fromEntries(headers),
    /** The part of all traces that is recorded, 0 to 1. */
    ratio,
  };
}
