/** A client of `GET /cloudyard/v1/events`. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { until } from './until.ts';

/** One block of a stream. `event` is `message` unless the stream names another. */
interface Received {
  event: string;
  id: string | null;
  data: Record<string, any> | null;
}

export type EventReader = Awaited<ReturnType<typeof readEvents>>;

/** Opens a stream with a token, or with the cookie of a session. Resolves when its headers have arrived. */
export async function readEvents(
  url: string,
  credential: string | { cookie: string },
  { query = '', lastEventId }: { query?: string; lastEventId?: string } = {},
) {
  const headers = {
    ...(typeof credential === 'string' ? { authorization: `apikey ${credential}` } : credential),
    accept: 'text/event-stream',
    ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
  };
  const sent = request(`${url}/cloudyard/v1/events${query}`, { headers, agent: false });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const received: Received[] = [];
  let [text, rest, lastId, ended] = ['', '', '', false];
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    text += chunk;
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      const field = (name: string) =>
        block
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      lastId = field('id') ?? lastId;
      const data = field('data');
      if (data === undefined) continue;
      received.push({ event: field('event') ?? 'message', id: field('id') ?? null, data: JSON.parse(data) });
    }
  });
  response.once('close', () => (ended = true));
  response.on('error', () => {});
  sent.on('error', () => {});
  const find = (fields: Record<string, unknown>) =>
    received.find(({ data }) => data && Object.entries(fields).every(([name, value]) => data[name] === value))?.data;
  return {
    status: response.statusCode!,
    headers: response.headers,
    /** Blocks with data, in order. */
    received,
    /** Everything, as text. */
    text: () => text,
    /** The ID that a client would resume after. */
    lastId: () => lastId,
    /** Whether the server has ended the stream. */
    ended: () => ended,
    /** Stops reading, as a client that hangs. */
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close: () => void sent.destroy(),
    /** Waits for an event with these fields. */
    async next(fields: Record<string, unknown>): Promise<Record<string, any>> {
      await until(() => find(fields), 10, `an event ${JSON.stringify(fields)} among ${JSON.stringify(received)}`);
      return find(fields)!;
    },
  };
}
