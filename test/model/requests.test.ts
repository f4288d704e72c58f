import { expect, it } from 'vitest';
import type { HttpAnswer } from '../http-client.ts';
import { emptyModel } from './model.ts';
import { type Played, send } from './requests.ts';

it('a resource that was never created is addressed by an id of its kind, and so is its parent', async () => {
  const paths: string[] = [];
  const request = async (_method: string, path: string) => {
    paths.push(path);
    return { status: 404, headers: {}, body: {} } as unknown as HttpAnswer;
  };
  const world = { yard: { request } } as unknown as Played['world'];
  const tenant = { clientId: 1, projectId: 2, token: 'x' } as Played['tenant'];
  const played = { world, tenant, ids: new Map(), disturbed: false, patienceSeconds: 1 };
  const body = { duration: -1, read_only: true };
  await send(played, emptyModel(), { command: 'update user', on: 'user1', label: null, body });
  expect(paths).toEqual(['/cloud/v1/registries/2/1/999999999/users/999999999']);
});
