/**
 * Parses the path of a request to a registry.
 *
 * Invariant: distribution receives a path that is rebuilt from the parsed one, never the bytes of the client. So the gate
 * and distribution cannot interpret a path differently, and the gate charges the registry that distribution writes to.
 */
import { digestGrammar, isDigest, tagGrammar } from '../../registry.ts';
import { isName } from '../layout.ts';

export interface Target {
  kind: 'base' | 'catalog' | 'tags' | 'manifest' | 'blob' | 'uploads' | 'upload';
  /** The path and query to send to distribution. */
  url: string;
  /** The repository with its prefix; empty for `base` and `catalog`. */
  name: string;
  /** The first component of the name: the registry. */
  prefix: string;
  /** The name below the prefix. */
  repository: string;
  /** The tag, digest or upload. */
  reference: string;
  /** The path of the blob that the request mounts from another registry. */
  mount: string | null;
}

const upload = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
/** Each pattern ends in a fixed number of components, so no path matches two of them. */
const kinds: [Target['kind'], RegExp][] = [
  ['tags', /^(.+)\/tags\/list$/],
  ['manifest', new RegExp(`^(.+)/manifests/(${digestGrammar}|${tagGrammar})$`)],
  ['blob', new RegExp(`^(.+)/blobs/(${digestGrammar})$`)],
  ['uploads', /^(.+)\/blobs\/uploads\/?$/],
  ['upload', new RegExp(`^(.+)/blobs/uploads/(${upload})$`)],
];
const parameters = ['digest', 'mount', 'from', 'n', 'last', '_state'];

/** Null for a path that is not part of the distribution API. */
export function targetOf(url: string): Target | null {
  const [path, text] = partsOf(url);
  const query = queryOf(text);
  const none = { name: '', prefix: '', repository: '', reference: '', mount: null };
  if (path === '/v2/' || path === '/v2') return { ...none, kind: 'base', url: '/v2/' };
  if (path === '/v2/_catalog') return { ...none, kind: 'catalog', url: '/v2/_catalog' };
  if (!path.startsWith('/v2/') || path.length > 1000) return null;
  for (const [kind, pattern] of kinds) {
    const [, name, reference = ''] = pattern.exec(path.slice('/v2/'.length)) ?? [];
    if (name === undefined) continue;
    const slash = name.indexOf('/');
    if (!isName(name) || slash < 0) return null;
    if (!isSha256(query.get('digest')) || !isSha256(query.get('mount'))) return null;
    const [prefix, repository] = [name.slice(0, slash), name.slice(slash + 1)];
    const rebuilt = `/v2/${name}/${pathOf(kind, reference)}${query.size > 0 ? `?${query}` : ''}`;
    return { kind, url: rebuilt, name, prefix, repository, reference, mount: mountOf(query, prefix) };
  }
  return null;
}

/** Whether the path names a digest that is malformed, or of an algorithm that is not supported. */
export function hasInvalidDigest(url: string): boolean {
  const [path, query] = partsOf(url);
  const given = queryOf(query);
  return (
    /\/(?:blobs|manifests)\/[^/]*:[^/]*$/.test(path) || !isSha256(given.get('digest')) || !isSha256(given.get('mount'))
  );
}

function pathOf(kind: Target['kind'], reference: string): string {
  if (kind === 'tags') return 'tags/list';
  if (kind === 'uploads') return 'blobs/uploads/';
  const folder = kind === 'manifest' ? 'manifests' : kind === 'blob' ? 'blobs' : 'blobs/uploads';
  return `${folder}/${reference}`;
}

function mountOf(query: URLSearchParams, prefix: string): string | null {
  const [digest, from] = [query.get('mount'), query.get('from')];
  if (digest === null || from === null || !isName(from) || from.startsWith(`${prefix}/`)) return null;
  return `/v2/${from}/blobs/${digest}`;
}

/** The path and the query. */
function partsOf(url: string): [string, string] {
  const at = url.indexOf('?');
  // Some clients escape the colon of a digest. No other character of a valid path needs escaping.
  const path = (at < 0 ? url : url.slice(0, at)).replaceAll(/%3a/gi, ':');
  return [path, at < 0 ? '' : url.slice(at + 1)];
}

/** The parameters that distribution reads, each once. */
function queryOf(text: string): URLSearchParams {
  const given = new URLSearchParams(text);
  const known = new URLSearchParams();
  for (const key of parameters) if (given.has(key)) known.set(key, given.get(key)!);
  return known;
}

/** Blobs are counted and collected by their SHA-256; distribution accepts other digests, too. */
function isSha256(given: string | null): boolean {
  return given === null || isDigest(given);
}
