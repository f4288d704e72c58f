import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import type { Layout } from '../layout.ts';
import { newFolders } from '../test-host.ts';
import type { Forward } from './forward.ts';
import { refuse, type Refusal } from './refusal.ts';
import { createTagLists } from './tags.ts';
import { targetOf } from './target.ts';

let layout: Layout;
let origin: string;
/** The status of distribution for HEAD: 405 with a valid token. */
let status: number;

const name = 'app-1/team/a';
const list = `/v2/${name}/tags/list`;
const tagsFolder = () => join(layout.repositories, name, '_manifests/tags');

const makeTags = async (names: string[]) => {
  await mkdir(tagsFolder(), { recursive: true });
  await Promise.all(names.map((each) => mkdir(join(tagsFolder(), each))));
};

/** A number with leading zeros. */
const padded = (i: number, length: number) => String(i).padStart(length, '0');

beforeEach(async () => {
  layout = await newFolders();
  status = 405;
  const head = async () => ({ statusCode: status }) as IncomingMessage;
  const sendTags = createTagLists({ layout, forward: Object.assign(() => {}, { head }) as unknown as Forward });
  const server = createServer((request, response) => {
    sendTags(request, response, targetOf(request.url!)!).then(
      (isSent) => isSent || response.writeHead(418).end(),
      (error: Refusal) => refuse(request, response, error),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

const get = async (path: string) => {
  const response = await fetch(`${origin}${path}`);
  const next = /^<(.*)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1] ?? null;
  const body = response.status === 418 ? null : ((await response.json()) as { name: string; tags: string[] });
  return { status: response.status, headers: response.headers, body, next };
};

/** All tags, by the links from page to page, and the number of pages. */
const follow = async (path: string) => {
  const tags: string[] = [];
  let pages = 0;
  for (let next: string | null = path; next !== null; pages += 1) {
    const page = await get(next);
    tags.push(...page.body!.tags);
    next = page.next;
  }
  return { tags, pages };
};

it('returns all tags in lexical order, also those that begin with an underscore', async () => {
  await makeTags(['v2', 'v10', 'V3', '_x', 'v1', 'latest', '1']);
  const { status, headers, body, next } = await get(list);
  expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  expect(body).toEqual({ name, tags: ['1', 'V3', '_x', 'latest', 'v1', 'v10', 'v2'] });
  expect(next).toBeNull();
});

it('returns n tags after last, and links to the next page while there is one', async () => {
  await makeTags(['e', 'c', 'a', 'd', 'b']);
  expect(await get(`${list}?n=2`)).toMatchObject({ body: { tags: ['a', 'b'] }, next: `${list}?n=2&last=b` });
  expect(await get(`${list}?n=2&last=b`)).toMatchObject({ body: { tags: ['c', 'd'] }, next: `${list}?n=2&last=d` });
  expect(await get(`${list}?n=2&last=d`)).toMatchObject({ body: { tags: ['e'] }, next: null });
  expect(await get(`${list}?n=5`)).toMatchObject({ body: { tags: ['a', 'b', 'c', 'd', 'e'] }, next: null });
  expect(await get(`${list}?n=99999999999999999999`)).toMatchObject({ body: { tags: { length: 5 } }, next: null });
  // A tag that does not exist, as after its deletion.
  expect(await get(`${list}?last=bb`)).toMatchObject({ body: { tags: ['c', 'd', 'e'] }, next: null });
  expect(await get(`${list}?last=z`)).toMatchObject({ body: { tags: [] }, next: null });
});

it('returns no tags and no link for n=0', async () => {
  await makeTags(['a', 'b']);
  expect(await get(`${list}?n=0`)).toMatchObject({ status: 200, body: { name, tags: [] }, next: null });
});

it.each(['-1', 'x', '1.5', '1e3', '%202', '0x1'])('refuses n=%s', async (n) => {
  await makeTags(['a']);
  expect(await get(`${list}?n=${n}`)).toMatchObject({
    status: 400,
    body: { errors: [{ code: 'PAGINATION_NUMBER_INVALID' }] },
  });
});

it('returns thousands of tags in pages of a limited size, each tag once', async () => {
  const names = Array.from({ length: 5000 }, (_, i) => padded((i * 7919) % 5000, 128));
  await makeTags(names);
  const { tags, pages } = await follow(list);
  expect(tags).toEqual([...names].sort());
  expect(pages).toBe(3);
  expect(await follow(`${list}?n=1000`)).toEqual({ tags, pages: 5 });
});

it('returns an empty list for a repository without tags', async () => {
  await mkdir(tagsFolder(), { recursive: true });
  expect(await get(list)).toMatchObject({ status: 200, body: { name, tags: [] } });
  await mkdir(join(layout.repositories, 'app-1/b/_manifests/revisions/sha256'), { recursive: true });
  expect(await get('/v2/app-1/b/tags/list')).toMatchObject({ status: 200, body: { tags: [] } });
});

it('omits files of the filesystem', async () => {
  await makeTags(['a']);
  await writeFile(join(tagsFolder(), '.nfs00012'), '');
  expect((await get(list)).body).toEqual({ name, tags: ['a'] });
});

it.each([
  ['a client without access', 401, list],
  ['a list that distribution returns by itself', 200, list],
  ['a repository that does not exist', 405, '/v2/app-1/none/tags/list'],
])('leaves the response for %s to distribution', async (_of, answer, path) => {
  await makeTags(['a']);
  status = answer;
  expect((await get(path)).status).toBe(418);
});

it('leaves the response for a folder that cannot be read to distribution', async () => {
  await mkdir(join(layout.repositories, name, '_manifests/revisions/sha256'), { recursive: true });
  await symlink('tags', tagsFolder());
  expect((await get(list)).status).toBe(418);
});
