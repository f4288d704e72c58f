/** The answers to proxies, for every way to name a container. */
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { keyBody, keyBuilders, soon, web } from './test-api-keys.ts';

const rateLimit = 100;
const cloud = useCloudyard({ driver: null, clientLimits: { requestsPerSecond: rateLimit } });
const { authorize, newClient } = keyBuilders(cloud);

describe('authorize', () => {
  it('allows the containers of a key and gives a reason for each refusal', async () => {
    const client = await newClient();
    const other = { name: 'db', namespace: 'default' };
    const { secret, name } = (await client.create(keyBody({ containers: [web, other] }))).body;
    expect(await authorize(secret)).toBe(204);
    expect(await authorize(secret, other)).toBe(204);
    expect(await authorize(secret, { name: 'web', namespace: 'other' })).toBe('403 other_container');
    expect(await authorize(undefined)).toBe('401 missing_key');
    expect(await authorize('')).toBe('401 missing_key');
    const [keyId, text] = secret.split('.');
    for (const wrong of ['x', '.', `${keyId}.`, keyId, `${keyId}.${text}x`, `.${text}`, `x.${text}`, client.token]) {
      expect(await authorize(wrong)).toBe('401 unknown_key');
    }
    const update = (changes: object) => cloud.patch(client.one(name), changes, client.options);
    await update({ is_disabled: true });
    expect(await authorize(secret)).toBe('403 disabled_key');
    await update({ is_disabled: false, containers: [other] });
    expect(await authorize(secret)).toBe('403 other_container');
    await update({ containers: null });
    expect(await authorize(secret)).toBe('403 no_containers');
    await update({ containers: [web], expire: soon() });
    expect(await authorize(secret)).toBe(204);
    cloud.clock.advance(4000);
    expect(await authorize(secret)).toBe('401 expired_key');
    await update({ is_disabled: true });
    expect(await authorize(secret)).toBe('403 disabled_key');
    await update({ is_disabled: false });
    cloud.clock.set(new Date(Date.now() - 60_000));
    expect(await authorize(secret)).toBe('403 pending_key');
    cloud.clock.set(null);
    await cloud.delete(client.one(name), client.options);
    expect(await authorize(secret)).toBe('401 unknown_key');
  });

  it('checks project and region if the proxy names them', async () => {
    const [mine, other] = [await newClient(), await newClient()];
    const { secret } = (await mine.create(keyBody())).body;
    const project_id = String(mine.projectId);
    expect(await authorize(secret, web, { project_id, region_id: '1' })).toBe(204);
    expect(await authorize(secret, web, { project_id, region_id: '2' })).toBe('403 other_place');
    expect(await authorize(secret, web, { project_id: String(other.projectId) })).toBe('403 other_place');
    for (const scope of [{ project_id: '' }, { project_id, region_id: '' }, { project_id, region_id: '0x1' }]) {
      expect(await authorize(secret, web, scope)).toBe('403 other_place');
    }
  });

  it('reads the container from the query, the headers or the path, never from a part that clients control', async () => {
    const client = await newClient();
    const { secret } = (await client.create(keyBody())).body;
    const send = async (method: string, url: string, headers: object = {}) => {
      const all = { 'x-api-key': secret, ...headers };
      const { statusCode } = await cloud.app.inject({ method: method as 'GET', url, headers: all, payload: undefined });
      return statusCode;
    };
    const path = '/cloudyard/v1/authorize';
    const named = { 'x-container-name': 'web', 'x-container-namespace': 'default' };
    expect(await send('GET', path, named)).toBe(204);
    expect(await send('HEAD', path, named)).toBe(204);
    expect(await send('GET', path)).toBe(403);
    expect(await send('GET', path, { ...named, 'x-container-project': String(client.projectId) })).toBe(204);
    expect(await send('GET', path, { ...named, 'x-container-project': '1' })).toBe(403);
    expect(await send('GET', path, { ...named, 'x-container-region': 'x' })).toBe(403);
    expect(await send('GET', path, { ...named, 'x-container-region': '' })).toBe(403);
    expect(await send('GET', `${path}?name=db&namespace=default`, named)).toBe(403);
    // Envoy sends this with a path_prefix that names no container.
    expect(await send('GET', `${path}/?name=web&namespace=default`)).toBe(403);

    const whole = `${path}/${client.projectId}/1/default/web`;
    for (const url of [whole, `${whole}/`, `${whole}/any/thing?name=db`, `${whole}?x`]) {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect([method, url, await send(method, url, { 'x-container-name': 'db' })]).toEqual([method, url, 200]);
      }
    }
    expect(await send('POST', whole, { 'content-type': 'text/html', 'content-length': '0' })).toBe(200);
    expect(await send('GET', whole.replace(/web$/, 'db/web'))).toBe(403);
    expect(await send('GET', whole.replace('/1/default', '/2/default'))).toBe(403);
    expect(await send('GET', `${path}/1/1/default/web`)).toBe(403);
    for (const odd of [
      'name=UPPER',
      'name=web&name=web',
      'name=web&project_id=x',
      'name=%00',
      'name=%ff',
      'name[]=web',
    ]) {
      expect([odd, await send('GET', `${path}?${odd}&namespace=default`)]).toEqual([odd, 403]);
    }
  });

  it('responds identically over a connection and within the framework', async () => {
    const client = await newClient();
    const dotted = { name: 'web', namespace: 'a.b_c' };
    const { secret } = (await client.create(keyBody({ containers: [web, dotted, { name: 'web', namespace: 'ü/x' }] })))
      .body;
    const at = await cloud.app.listen({ host: '127.0.0.1', port: 0 });
    const place = `${client.projectId}/1`;
    const answers = new Set<number>();
    for (const url of [
      ...[
        '?name=web&namespace=default',
        '?namespace=default&name=web&project_id=&x',
        '?name=web&namespace=default&name=web',
      ],
      ...[
        `?name=web&namespace=default&project_id=${client.projectId}`,
        '?name=web&namespace=default&region_id=2',
        '?name=%77eb&namespace=default',
      ],
      ...[
        '',
        '?',
        '?name=',
        'x?name=web&namespace=default',
        '/?name=web&namespace=default',
        `/${place}`,
        `/${place}/default/web`,
      ],
      ...[
        `/${place}/default/web/`,
        `/${place}/default/web/a?b`,
        `/${place}/default/web?b`,
        `/${place}/default/webs`,
        `/${place}/a.b_c/web`,
      ],
      ...[
        `/${place}/%C3%BC%2Fx/web`,
        `/${place}/default/%77eb`,
        `/1/1/default/web`,
        `/x/1/default/web`,
        `/0${place}/default/web`,
      ],
    ]) {
      for (const key of [secret, 'x', undefined]) {
        const headers = key === undefined ? {} : { 'x-api-key': key };
        const path = `/cloudyard/v1/authorize${url}`;
        const { status, headers: shown } = await fetch(`${at}${path}`, { headers });
        const within = await cloud.app.inject({ url: path, headers });
        const received = [status, shown.get('content-length'), shown.get('x-cloudyard-reason')];
        const { statusCode, headers: expected } = within;
        expect([path, key, ...received]).toEqual([
          path,
          key,
          statusCode,
          expected['content-length'] ?? null,
          expected['x-cloudyard-reason'] ?? null,
        ]);
        answers.add(status);
      }
    }
    expect([...answers].sort()).toEqual([200, 204, 401, 403, 404]);
  });

  it('has no rate limit and needs no token', async () => {
    const client = await newClient();
    const { secret } = (await client.create(keyBody())).body;
    for (let i = 0; i <= rateLimit; i++) expect(await authorize(secret)).toBe(204);
    for (let i = 0; i <= rateLimit; i++) expect(await authorize('x')).toBe('401 unknown_key');
  });
});
