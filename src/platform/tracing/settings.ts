/** The settings of traces. */
import type { CoreSettingName } from '../setting-meanings.ts';
import type { SettingReader } from '../setting-reader.ts';

export interface TracingSettings {
  /** Base URL of the collector. */
  endpoint: string;
  headers: Record<string, string>;
  /** The part of all traces that is recorded, 0 to 1. */
  ratio: number;
}

/** Null without CLOUDYARD_OTLP_ENDPOINT. */
export function readTracingSettings(reader: SettingReader<CoreSettingName>): TracingSettings | null {
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
  return { endpoint, headers: Object.fromEntries(headers), ratio };
}
