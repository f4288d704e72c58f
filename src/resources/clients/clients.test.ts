import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';

const path = '/cloudyard/v1/clients';
const cloud = useCloudyard({ driver: null });

describe('clients', () => {
  it('are created by the operator with a project and networks, and a token makes them usable', async () => {
    const made = await cloud.post(path, { name: 'Example' });
    expect(made).toMatchObject({ status: 201, body: { name: 'Example', emails: [], created_at: expect.any(String) } });
    const { id } = made.body;
    const { token } = (await cloud.post('/cloudyard/v1/tokens', { name: 'first', role: 'admin', client_id: id })).body;
    const projects = (await cloud.get('/cloud/v1/projects', { token })).body.results;
    expect(projects).toMatchObject([{ name: 'Default', client_id: id, is_default: true }]);
    expect((await cloud.get(`/cloud/v1/networks/${projects[0].id}/1`, { token })).body.count).toBe(1);
    const { rows } = await cloud.db.$client.query('select client_id from audit_entries where request_id = $1', [
      made.headers['x-request-id'],
    ]);
    expect(rows).toEqual([{ client_id: id }]);
  });

  it('are listed for the operator, the oldest first, in pages', async () => {
    const { clientId } = await cloud.newClient();
    const { body } = await cloud.get(path);
    const ids = body.results.map(({ id }: { id: number }) => id);
    expect([body.count, ids[0], ids.at(-1)]).toEqual([ids.length, 1, clientId]);
    expect((await cloud.get(`${path}?limit=1&offset=${ids.length - 1}`)).body).toMatchObject({
      count: ids.length,
      results: [{ id: clientId }],
    });
  });

  it('are renamed by the operator only; their sessions show the new name', async () => {
    const { clientId, token } = await cloud.newClient();
    const signedIn = await cloud.post('/cloudyard/v1/session', { token }, { token: null });
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0]!;
    const shown = async () =>
      (await cloud.get('/cloudyard/v1/session', { token: null, headers: { cookie } })).body.client_name;
    expect(await shown()).toMatch(/^client /);
    const one = `${path}/${clientId}`;
    const refused = await cloud.patch(one, { name: 'by itself' }, { token });
    expect(refused).toMatchObject({ status: 403, body: { errors: [{ path: 'name' }] } });
    const emails = ['alerts@example.com'];
    expect((await cloud.patch(one, { name: 'Renamed', emails })).body).toMatchObject({ name: 'Renamed', emails });
    expect((await cloud.get(one, { token })).body.name).toBe('Renamed');
    await expect.poll(shown, { timeout: 2000, interval: 10 }).toBe('Renamed');
  });

  it('have different names, also when two are created or renamed at once', async () => {
    const both = await Promise.all([cloud.post(path, { name: 'same' }), cloud.post(path, { name: 'same' })]);
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
    const refused = both.find(({ status }) => status === 409)!;
    expect(refused.body).toMatchObject({ exception_class: 'NameTaken', errors: [{ path: 'name' }] });
    const { clientId } = await cloud.newClient();
    expect((await cloud.patch(`${path}/${clientId}`, { name: 'same' })).status).toBe(409);
  });

  it.each([
    {},
    { name: '' },
    { name: 'a\u0000b' },
    { name: 'x'.repeat(256) },
    { name: 1 },
    { name: 'x', operator: true },
  ])('are not created from invalid body %#', async (body) => {
    expect((await cloud.post(path, body)).status).toBe(400);
  });
});
