/**
 * Lists the tags of a repository in pages. Distribution 2.8 ignores `n` and `last`, and returns all tags in the order of the
 * directory; the OCI specification requires pages, in lexical order.
 *
 * Distribution decides whether the client may read the list: it refuses HEAD with 405 after it has accepted the token. The gate then
 * reads the names from the disk.
 *
 * Invariant: the memory of a request does not depend on the number of tags: names of later pages are dropped while the directory is
 * read.
 */
import { opendir } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { orNone } from '../../../platform/or-none.ts';
import { limited } from '../../../platform/turns.ts';
import { tagGrammar } from '../../registry.ts';
import type { Layout } from '../layout.ts';
import { type Repository, revisionsOf, tagsOf, writtenAt } from '../storage.ts';
import type { Forward } from './forward.ts';
import { Refusal } from './refusal.ts';
import type { Target } from './target.ts';

/** Of the names of a page: 2,000 of the longest ones, and more than 10,000 usual ones. */
const pageBytes = 256 * 1024;
/** Each of them reads a directory of up to 100,000 names. */
const concurrentReads = 4;
const tagName = new RegExp(`^${tagGrammar}$`);

interface Page {
  tags: string[];
  /** Whether tags follow the last one. */
  hasMore: boolean;
}

/**
 * Returns the handler of GET for a list of tags. It resolves with false if distribution must respond: with a refusal, or for a
 * repository that does not exist or cannot be read.
 */
export function createTagLists({ layout, forward }: { layout: Layout; forward: Forward }) {
  const inTurn = limited(concurrentReads);

  /** @throws Refusal if the parameters are invalid */
  return async (request: IncomingMessage, response: ServerResponse, target: Target): Promise<boolean> => {
    const { url, name, prefix, repository } = target;
    const answer = await forward.head(request, url).catch(() => null);
    if (answer?.statusCode !== 405) return false;
    const parameters = new URL(url, 'http://localhost').searchParams;
    const n = numberOf(parameters.get('n'));
    const last = parameters.get('last') ?? '';
    const folder = layout.repository(prefix, repository);
    const page = await inTurn(() => readPage({ name: repository, folder }, last, n)).catch(() => null);
    if (!page) return false;
    const { tags, hasMore } = page;
    const text = `${JSON.stringify({ name, tags })}\n`;
    if (hasMore && n !== 0) {
      parameters.set('last', tags.at(-1)!);
      response.setHeader('link', `</v2/${name}/tags/list?${parameters}>; rel="next"`);
    }
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'docker-distribution-api-version': 'registry/2.0',
      'x-content-type-options': 'nosniff',
      'content-length': Buffer.byteLength(text),
    });
    response.end(text);
    return true;
  };
}

/** The maximum number of tags that the client requests. */
function numberOf(n: string | null): number {
  if (n === null || n === '') return Number.POSITIVE_INFINITY;
  if (!/^\d+$/.test(n)) {
    throw new Refusal(400, 'PAGINATION_NUMBER_INVALID', 'n must be a whole number of at least 0');
  }
  return Number(n);
}

/** Null: the repository does not exist. @throws if it cannot be read */
async function readPage(repository: Repository, last: string, n: number): Promise<Page | null> {
  const names = await opendir(tagsOf(repository), { bufferSize: 1000 }).catch(orNone(null));
  if (names) return firstPage(names, last, n);
  // Its manifests were pushed by digest.
  return (await writtenAt(revisionsOf(repository))) ? { tags: [], hasMore: false } : null;
}

/** The first names after `last`: at most `n`, and at most `pageBytes` of them. */
async function firstPage(names: AsyncIterable<{ name: string }>, last: string, n: number): Promise<Page> {
  const tags: string[] = [];
  let bytes = 0;
  /** This name and those after it belong to later pages. */
  let end = null as string | null;
  const shorten = () => {
    tags.sort();
    let count = 0;
    bytes = 0;
    for (; count < tags.length && count < n; count += 1) {
      if (bytes + tags[count]!.length > pageBytes) break;
      bytes += tags[count]!.length;
    }
    end = tags[count] ?? end;
    tags.length = count;
  };
  for await (const { name } of names) {
    if (name <= last || (end !== null && name >= end) || !tagName.test(name)) continue;
    tags.push(name);
    bytes += name.length;
    if (tags.length > 2 * n || bytes > 2 * pageBytes) shorten();
  }
  shorten();
  return { tags, hasMore: end !== null };
}
