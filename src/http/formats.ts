/** The string formats of request schemas, with their maximum lengths and their descriptions in errors. */
import type Ajv from 'ajv';
import addFormats from 'ajv-formats';
import { instantOf } from '../platform/clock.ts';
import { canonicalNetwork, isAddress } from '../platform/network-address.ts';

interface Format {
  maxLength: number;
  description?: string;
  /** A condition besides that of the library. */
  accepts?(text: string): boolean;
}

const dateTime: Format = {
  maxLength: 64,
  description: 'a date and time such as 2026-11-20T09:52:52Z',
  // No column holds a leap second or the year 0.
  accepts: (text) => instantOf(text) !== null,
};

export const formats: Record<string, Format> = {
  uuid: { maxLength: 36, description: 'a UUID' },
  'date-time': dateTime,
  'iso-date-time': dateTime,
  email: { maxLength: 254, description: 'an e-mail address such as name@example.com' },
  uri: { maxLength: 2000, description: 'a URL such as https://example.com/hook' },
  'ip-address': { maxLength: 45, description: 'an IPv4 or IPv6 address' },
  'ip-network': {
    maxLength: 49,
    description: 'an IPv4 or IPv6 address, or a network such as 10.0.0.0/24 without host bits',
  },
  'ip-cidr': { maxLength: 49, description: 'an IPv4 or IPv6 network such as 10.0.0.0/24 without host bits' },
};

type Matches = (text: string) => boolean;

/**
 * Adds the formats to a validator. The length is checked first, because the regular expressions of some formats take
 * quadratic time.
 */
export function addRequestFormats(ajv: Ajv.default): void {
  addFormats.default(ajv);
  // The format of the package accepts `urn:uuid:…`, which PostgreSQL rejects.
  ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i);
  ajv.addFormat('ip-address', isAddress);
  ajv.addFormat('ip-network', (text: string) => canonicalNetwork(text) !== null);
  ajv.addFormat('ip-cidr', (text: string) => text.includes('/') && canonicalNetwork(text) !== null);
  for (const [name, { maxLength, accepts }] of Object.entries(formats)) {
    const matches = matcherOf(ajv.formats[name]);
    ajv.addFormat(name, (text: string) => text.length <= maxLength && matches(text) && (accepts?.(text) ?? true));
  }
}

function matcherOf(format: unknown): Matches {
  const definition = (format as { validate?: unknown }).validate ?? format;
  return definition instanceof RegExp ? (text) => definition.test(text) : (definition as Matches);
}
