import { describe, expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';
import { findControlPlane } from './control-plane.ts';

const planeOf = (env: Record<string, string>) =>
  findControlPlane(readSettings(env, checkoutPlaces('/srv'), false), silentLogger);
const portsOf = async (env: Record<string, string>) =>
  (await planeOf(env)).ownPorts().map(({ daemon, port }) => `${daemon} ${port}`);

describe('the control plane', () => {
  it('has the ports that the settings say, and that of an API server when it listens', async () => {
    expect(await portsOf({})).toEqual(['NFS 2049', 'mountd 20048', 'rpcbind 111', 'registry 5000']);
    const given = { CLOUDYARD_PORT: '1', CLOUDYARD_WORKER_PORT: '2', CLOUDYARD_NFS_PORT: '3' };
    expect(await portsOf({ ...given, CLOUDYARD_NFS_MOUNT_PORT: '4', CLOUDYARD_REGISTRY_PORT: '5' })).toEqual([
      'API 1',
      'worker 2',
      'NFS 3',
      'mountd 4',
      'rpcbind 111',
      'registry 5',
    ]);
    const plane = await planeOf({ CLOUDYARD_PORT: '0' });
    await plane.add('API', 'http://127.0.0.1:34567');
    await plane.add('API', 'http://[::1]:34568');
    await plane.refresh();
    const api = plane.ownPorts().filter(({ daemon }) => daemon === 'API');
    expect(api.map(({ port }) => port)).toEqual([34567, 34568]);
  });

  it.each([
    ['https://127.0.0.1:443', 443],
    ['http://127.0.0.1:80', 80],
  ])('has the port of an API server at %s', async (url, port) => {
    const plane = await planeOf({ CLOUDYARD_PORT: '0' });
    await plane.add('API', url);
    expect(plane.ownPorts()).toContainEqual(expect.objectContaining({ port }));
    expect(plane.ownPorts()).not.toContainEqual(expect.objectContaining({ port: port === 443 ? 80 : 443 }));
  });

  it('has the ports of a database and a mail server that are on this host', async () => {
    const smtp = { CLOUDYARD_SMTP_URL: 'smtp://127.0.0.1:2525', CLOUDYARD_SMTP_FROM: 'a@example.org' };
    const ports = await portsOf({ DATABASE_URL: 'postgres://u:p@localhost/db', ...smtp });
    expect(ports).toEqual(expect.arrayContaining(['database 5432', 'SMTP 2525']));
    const elsewhere = await portsOf({ DATABASE_URL: 'postgres://u:p@10.0.0.5/db' });
    expect(elsewhere).not.toContain('database 5432');
    expect(await portsOf({ DATABASE_URL: 'postgres://u@/db?host=/run/postgresql' })).not.toContain('database 5432');
  });

  it('has the addresses of all that it depends on', async () => {
    const plane = await planeOf({
      DATABASE_URL: 'postgres://u:p@10.0.0.1:6432/db',
      CLOUDYARD_HOST: '10.0.0.2',
      CLOUDYARD_NFS_HOST: '10.0.0.3',
      CLOUDYARD_REGISTRY_HOST: '10.0.0.4',
      CLOUDYARD_PUBLIC_URL: 'https://[fd00::5]:8443/cloud',
      CLOUDYARD_SMTP_URL: 'smtps://user:password@10.0.0.6',
      CLOUDYARD_SMTP_FROM: 'a@example.org',
    });
    await plane.add('API', 'http://10.0.0.7:8080');
    const expected = [...[1, 2, 3, 4, 6, 7].map((n) => `10.0.0.${n}`), 'fd00::5'];
    expect(plane.controlPlane()).toEqual(expect.arrayContaining(expected));
  });

  it('starts where a name does not resolve', async () => {
    const plane = await planeOf({ CLOUDYARD_NFS_HOST: 'nfs.invalid' });
    expect(plane.controlPlane()).toContain('127.0.0.1');
  });
});
