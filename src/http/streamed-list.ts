/**
 * Lists whose items may be large: written while they are read, so that none is too long for memory or for a string, and
 * other requests are answered in between. Once it has begun such an answer can only break off, so whatever may be wrong
 * with a request is to be found out before.
 */
import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';

/** Answers with `fields` and, as `results`, the items of all groups. */
export function sendList<Reply extends FastifyReply>(
  reply: Reply,
  fields: Record<string, unknown>,
  groups: AsyncIterable<unknown[]>,
): Reply {
  reply.type('application/json; charset=utf-8').send(Readable.from(textOf(fields, groups)));
  return reply;
}

async function* textOf(fields: Record<string, unknown>, groups: AsyncIterable<unknown[]>): AsyncGenerator<string> {
  yield `${JSON.stringify(fields).slice(0, -1)},"results":[`;
  let isFirst = true;
  for await (const group of groups) {
    if (group.length === 0) continue;
    yield (isFirst ? '' : ',') + group.map((item) => JSON.stringify(item)).join(',');
    isFirst = false;
    await turn();
  }
  yield ']}';
}
