/**
 * Sends large responses. Their lists are read and written in groups, so that a response does not exceed the memory or the
 * length of a string, and other requests are handled in between. Short responses are sent at once.
 *
 * Failure modes: once a long response has started, an error can only close the connection. Check the request before.
 */
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import type { Groups, PageOfItems } from '../platform/large-rows.ts';

/** Characters of the longest response that is sent at once. */
const shortLength = 64 * 1024;

/** Sends `body`. Its fields, and the fields of its list items, may be `Groups`. */
export async function sendInGroups<Reply extends FastifyReply>(
  reply: Reply,
  body: Record<string, unknown>,
): Promise<Reply> {
  const rest = textOf(body);
  let start = '';
  let isWhole = false;
  while (!isWhole && start.length <= shortLength) {
    const next = await rest.next();
    if (next.done) isWhole = true;
    else start += next.value;
  }
  reply.type('application/json; charset=utf-8').send(isWhole ? start : Readable.from(continued(start, rest)));
  return reply;
}

/** Sends a page: in groups if it is long, otherwise as any other response. */
export function sendPage<Reply extends FastifyReply, Item>(
  reply: Reply,
  { count, results }: PageOfItems<Item>,
): { count: number; results: Item[] } | Promise<Reply> {
  return Array.isArray(results) ? { count, results } : sendInGroups(reply, { count, results });
}

async function* continued(start: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  yield start;
  yield* rest;
}

async function* textOf(body: Record<string, unknown>): AsyncGenerator<string> {
  let separator = '{';
  for (const [field, value] of Object.entries(body)) {
    if (value === undefined) continue;
    yield `${separator}${JSON.stringify(field)}:`;
    if (isGroups(value)) yield* listText(value);
    else yield JSON.stringify(value);
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}

async function* listText(groups: Groups<unknown>): AsyncGenerator<string> {
  let separator = '[';
  for await (const group of groups) {
    if (separator === ',') await turn();
    if (group.some(hasGroups)) {
      for (const item of group) {
        yield separator;
        yield* textOf(item as Record<string, unknown>);
        separator = ',';
      }
    } else if (group.length > 0) {
      yield separator + group.map((item) => JSON.stringify(item)).join(',');
      separator = ',';
    }
  }
  yield separator === '[' ? '[]' : ']';
}

function isGroups(value: unknown): value is Groups<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function hasGroups(item: unknown): boolean {
  return typeof item === 'object' && item !== null && Object.values(item).some(isGroups);
}
