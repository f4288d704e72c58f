/** What ends an event stream: the server checks the credential of each stream every 300 ms of the test's clock. */
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { type EventReader, readEvents } from '../../../test/event-stream.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { until } from '../../../test/until.ts';

const cloud = useCloudyard({ driver: null });
const path = '/cloudyard/v1/session';
const checkMs = 300;
let url: string;
beforeAll(async () => {
  url = await cloud.app.listen({ port: 0, host: '127.0.0.1' });
});

type Credential = string | { cookie: string };
const readers: EventReader[] = [];
beforeEach(() => vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.close();
  // The interval begins with the first stream.
  await until(async () => (await openStreams()) === 0, 30, 'the end of the streams');
  vi.useRealTimers();
});

async function openStreams(): Promise<number> {
  const { body } = await cloud.get('/metrics');
  return Number(/^cloudyard_event_streams (\d+)$/m.exec(body)![1]);
}

async function open(credential: Credential): Promise<EventReader> {
  const reader = await readEvents(url, credential);
  readers.push(reader);
  expect(reader.status).toBe(200);
  await until(() => reader.text() !== '', 30, 'the first bytes');
  return reader;
}

/** The server has read the revision of the change that made the credential invalid. */
async function refused(credential: Credential): Promise<void> {
  const answer = () =>
    typeof credential === 'string'
      ? cloud.get('/cloud/v1/projects', { token: credential })
      : cloud.get('/cloud/v1/projects', { token: null, headers: credential });
  // Unlike expect.poll, it does not advance the clock of the test.
  await until(async () => (await answer()).status === 401, 30, 'the refusal of the credential');
}

async function expectEndAtNextCheck(reader: EventReader): Promise<void> {
  expect(reader.ended()).toBe(false);
  vi.advanceTimersByTime(checkMs);
  await until(() => reader.ended(), 30, 'the end of the stream');
}

async function signIn(token: string): Promise<{ cookie: string; csrf: string }> {
  const answer = await cloud.post(path, { token }, { token: null });
  return { cookie: String(answer.headers['set-cookie']).split(';')[0]!, csrf: answer.body.csrf_token };
}

it('the revocation of its token ends a stream at the next check', async () => {
  const { token } = await cloud.newClient();
  const stream = await open(token);
  await cloud.services.tokens.revoke(token.split('$')[0]!);
  await refused(token);
  await expectEndAtNextCheck(stream);
  expect((await readEvents(url, token)).status).toBe(401);
});

it('the expiry of its token ends a stream at the next check', async () => {
  const { clientId } = await cloud.newClient();
  const token = await cloud.newToken(clientId, 'reader', null, new Date(Date.now() + 3_600_000));
  const stream = await open(token);
  vi.advanceTimersByTime(checkMs);
  await cloud.get('/cloud/v1/projects', { token });
  cloud.clock.advance(3600);
  await expectEndAtNextCheck(stream);
  cloud.clock.set(null);
});

it('the sign-out ends the stream of a session at the next check, and others of the token continue', async () => {
  const { token } = await cloud.newClient();
  const [one, other] = [await signIn(token), await signIn(token)];
  const [ending, continuing] = [await open({ cookie: one.cookie }), await open({ cookie: other.cookie })];
  const headers = { cookie: one.cookie, 'x-csrf-token': one.csrf };
  expect((await cloud.delete(path, { token: null, headers })).status).toBe(204);
  await refused({ cookie: one.cookie });
  await expectEndAtNextCheck(ending);
  await cloud.post('/cloud/v1/projects', { name: 'seen' }, { token });
  await continuing.next({ kind: 'project', change: 'created' });
  expect((await readEvents(url, { cookie: one.cookie })).status).toBe(401);
});

it('the revocation of the token of its session ends a stream at the next check', async () => {
  const { token } = await cloud.newClient();
  const { cookie } = await signIn(token);
  const stream = await open({ cookie });
  await cloud.services.tokens.revoke(token.split('$')[0]!);
  await refused({ cookie });
  await expectEndAtNextCheck(stream);
});
