import { afterAll, expect, it } from 'vitest';
import { type EventReader, readEvents } from '../../../test/event-stream.ts';
import { useCloudyard } from '../../../test/harness.ts';

const cloud = useCloudyard({ clientLimits: { eventStreams: 3 } });
let streams: EventReader[] = [];
afterAll(() => {
  for (const stream of streams) stream.close();
});

// In a file of its own: only the first streams of a server wait for its feed.
it('the limit of streams holds for requests that wait for the feed together', async () => {
  const url = await cloud.app.listen({ port: 0, host: '127.0.0.1' });
  const { token } = await cloud.newClient();
  streams = await Promise.all(Array.from({ length: 20 }, () => readEvents(url, token, {})));
  const statuses = streams.map(({ status }) => status);
  expect(statuses.sort()).toEqual([200, 200, 200, ...Array<number>(17).fill(429)]);
});
