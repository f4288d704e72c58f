export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json | undefined };

/** A request as the console sends it. */
export interface ApiRequest {
  /** As in openapi.json. */
  readonly operationId: string;
  /** In any case. */
  readonly method: string;
  /** The path of openapi.json, with its parameters in braces. */
  readonly path: string;
  /** Values of the parameters in `path`, without percent-encoding. */
  readonly params?: Readonly<Record<string, string | number>>;
  /** A list repeats its name; null and undefined are left out. */
  readonly query?: Readonly<Record<string, QueryValue | QueryValue[] | null | undefined>>;
  /** JSON. */
  readonly body?: unknown;
  /** The base URL of the server, such as `http://127.0.0.1:8080`. */
  readonly url: string;
}

type QueryValue = string | number | boolean;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a parameter names the project or the region. */
export function isPlace(name: string): boolean {
  return name === 'project_id' || name === 'region_id';
}

/** The base URL without a slash at its end, and with no character that a shell or a string literal gives a meaning. */
export function baseUrlOf({ url }: ApiRequest): string {
  return url.replace(/\/+$/, '').replace(/[^\w@%+=:,./[\]-]/gu, encode);
}

/** The path and the query, percent-encoded. */
export function targetOf({ path, params = {}, query = {} }: ApiRequest): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encode(String(params[name] ?? '')));
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value ?? []].flat().map((single) => `${encode(name)}=${encode(String(single))}`),
  );
  return pairs.length > 0 ? `${filled}?${pairs.join('&')}` : filled;
}

/** Encodes quotes too, which encodeURIComponent leaves. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(/['()*!]/g, hexOf);
}

function hexOf(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/**
 * Characters that a terminal or an editor does not show as they are: controls, lone surrogates, and marks that change the
 * direction of text, which can make code look like other code.
 */
const hidden = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** Writes hidden characters as `\uXXXX`, which JSON, Python and HCL read alike. */
export function escapeHidden(text: string): string {
  return text.replace(hidden, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
