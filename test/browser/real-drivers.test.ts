/** The console on real drivers: what its pages show is what NFS and HTTP clients get. */
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { nfs, nfsUrl } from '../nfs-client.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { useConsole } from './console.ts';

vi.setConfig({ testTimeout: 200_000 });

const parts = ['haproxy', 'nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'the console with HAProxy and NFS-Ganesha', () => {
  const consoleOf = useConsole({
    CLOUDYARD_FILE_SHARE_DRIVER: 'ganesha',
    CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy',
  });
  const { open } = consoleOf;
  const members: Server[] = [];
  const portOf = (at: number) => (members[at]!.address() as AddressInfo).port;

  beforeAll(async () => {
    for (const name of ['one', 'two']) {
      const member = createServer((_request, response) => void response.end(name));
      members.push(member);
      await new Promise<void>((resolve) => member.listen(0, '127.0.0.1', resolve));
    }
  });
  afterAll(() => members.forEach(close));

  const submit = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

  it('creates a share that clients reach at the shown address, and shows its used space', async () => {
    const page = await open('file-shares');
    expect(await page.locator('.badge.simulated').count()).toBe(0);
    await page.getByRole('link', { name: 'Create file share' }).click();
    await page.getByLabel('Name', { exact: true }).fill('docs');
    await page.getByLabel('Size (GiB)').fill('1');
    await page.getByRole('group', { name: 'Access' }).getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('Address or network 1').fill('127.0.0.0/8');
    await submit(page, 'Create file share');
    await page.getByRole('cell', { name: 'available' }).waitFor();
    await page.getByRole('link', { name: 'docs' }).click();
    const commands = await page.locator('pre', { hasText: 'mount -t nfs' }).innerText();
    const [, port, target, directory] = /mount -t nfs -o nfsvers=4\.1,port=(\d+) (\S+) (\S+)/.exec(commands)!;
    expect(port).toBe(consoleOf.yard.env['CLOUDYARD_NFS_PORT']);
    expect(directory).toBe('/mnt/docs');

    const file = join(consoleOf.yard.folder, 'hello');
    writeFileSync(file, 'hello');
    await nfs('nfs-cp', file, nfsUrl(consoleOf.yard, target!, '/hello'));
    expect(await nfs('nfs-ls', nfsUrl(consoleOf.yard, target!, '', 4))).toMatch(/5 hello/);
    // The worker measures every minute; an event refreshes the open page.
    await page.getByRole('meter', { name: 'Used space of docs' }).waitFor({ timeout: 100_000 });
    await page.getByText(/MiB of \d+ MiB/).waitFor();
  });

  it('creates a load balancer, and shows its distribution, traffic and a failed member', async () => {
    const { yard } = consoleOf;
    const port = await freePort();
    const page = await open('load-balancers/new');
    await page.getByLabel('Name', { exact: true }).fill('shop');
    await page.getByLabel('Listener name').fill('front');
    await page.getByLabel('Listener port').fill(String(port));
    await page.getByLabel('Pool name').fill('back');
    await page.getByLabel(/^Check the members/).check();
    await page.getByLabel('Interval (s)').fill('2');
    await page.getByLabel('Time limit (s)').fill('1');
    await page.getByLabel('Failures until down').fill('1');
    for (const number of [1, 2]) {
      await page.getByRole('button', { name: 'Add member' }).click();
      await page.getByLabel(`Address ${number}`).fill('127.0.0.1');
      await page.getByLabel(`Port ${number}`).fill(String(portOf(number - 1)));
    }
    await submit(page, 'Create load balancer');
    await page.getByRole('cell', { name: 'online' }).waitFor();
    await page.getByRole('link', { name: 'shop' }).click();
    const address = await page.locator('code', { hasText: /^\d+\.\d+\.\d+\.\d+$/ }).innerText();
    const balancer = page.url();

    const answersTo = async (requests: number): Promise<number[]> => {
      const answers: string[] = [];
      for (let at = 0; at < requests; at += 1) {
        const response = await fetch(`http://${address}:${port}/`, { headers: { connection: 'close' } });
        answers.push(await response.text());
      }
      return ['one', 'two'].map((name) => answers.filter((answer) => answer === name).length);
    };
    expect(await answersTo(8)).toEqual([4, 4]);

    await page.goto(`${balancer}?tab=pools`);
    await page.getByRole('link', { name: 'Edit members' }).click();
    await page.getByLabel('Weight 1').fill('3');
    const updates: string[] = [];
    page.on('request', (request) => request.method() !== 'GET' && updates.push(request.method()));
    await submit(page, 'Save members');
    await page.getByText('Updated the members of back').waitFor();
    expect(updates).toEqual(['PATCH']);
    expect(await answersTo(8)).toEqual([6, 2]);

    const path = `/cloud/v1/loadbalancers/1/1/${new URL(balancer).pathname.split('/').at(-1)}?show_stats=true`;
    await until(async () => (await yard.get(path)).body.stats.total_connections >= 16, 30, 'counted');
    // The traffic of a minute is shown when the minute has ended.
    await yard.post('/cloudyard/v1/dev/clock', { advance_seconds: 120 });
    await page.goto(`${balancer}?tab=traffic`);
    for (const name of [/^Requests per second\. .* highest 0\.\d*[1-9]/, /^New connections .* highest 0\.\d*[1-9]/]) {
      await page.getByRole('img', { name }).waitFor();
    }
    await page.getByRole('img', { name: /^Errors .* highest 0; .* highest 0$/ }).waitFor();

    await page.goto(balancer);
    const failing = page.locator('.status-tree li', { hasText: `Member 127.0.0.1 port ${portOf(1)}` }).last();
    await failing.locator('.badge.ok').waitFor();
    close(members[1]!);
    await failing.locator('.badge.bad', { hasText: 'error' }).waitFor();
    expect(await answersTo(4)).toEqual([4, 0]);
  });
});

function close(member: Server): void {
  member.closeAllConnections();
  member.close();
}
