/** `apply` and `diff`, as processes, on one server with simulated drivers. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Yard } from '../processes.ts';
import { type Client, openClient } from './client.ts';

let yard: Yard;
let run: Client['run'];
let data: Client['data'];

beforeAll(async () => void ({ yard, run, data } = await openClient()));
afterAll(() => yard?.cleanUp());

const shop = `
kind: listener
name: shop-web
protocol: HTTP
protocol_port: 8090
load_balancer_id: shop
---
kind: load-balancer
name: shop
tags: {app: shop}
---
- kind: file-share
  name: uploads
  protocol: NFS
  size: 1
  network: {network_id: shop}
  access: [{ip_address: 10.0.0.1, access_mode: rw}]
  tags: {app: shop}
- {kind: subnet, name: shop-1, network_id: shop, cidr: 10.9.0.0/24}
- {kind: network, name: shop, tags: {app: shop}}
`;

describe('apply', () => {
  it('creates in the order of dependencies, changes what differs, and prunes by tag', async () => {
    const actions = async (command: string, text: string, ...more: string[]) => {
      const { code, stdout, stderr } = await run([command, '-f', '-', '-o', 'json', ...more], text);
      expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
      const rows = JSON.parse(stdout) as { action: string; kind: string; name: string }[];
      return rows.map(({ action, kind, name }) => `${action} ${kind} ${name}`);
    };
    const all = ['network shop', 'subnet shop-1', 'file-share uploads', 'load-balancer shop', 'listener shop-web'];
    expect(await actions('diff', shop)).toEqual(all.map((name) => `create ${name}`));
    expect(await actions('apply', shop)).toEqual(all.map((name) => `created ${name}`));
    expect(await actions('apply', shop)).toEqual(all.map((name) => `unchanged ${name}`));
    const changed = shop.replace('size: 1', 'size: 2').replace('10.0.0.1', '10.0.0.2');
    const differs = { code: 1, stderr: 'cloudyard: 1 resource differs\n' };
    expect(await run(['diff', '-f', '-', '--exit-code'], changed)).toMatchObject(differs);
    expect(await actions('apply', changed)).toContain('updated file-share uploads');
    expect(await data('file-share', 'show', 'uploads')).toMatchObject({ size: 2 });
    expect(await data('file-share', 'access-rule', 'list', 'uploads')).toMatchObject([{ access_to: '10.0.0.2' }]);
    expect(await actions('diff', changed)).toEqual([]);
    const { name: project } = await data('project', 'show', '1');
    const rest = `{kind: network, name: shop, project: ${project}, tags: {app: shop}}`;
    expect(await actions('apply', rest, '--prune', 'app=shop')).toEqual([
      'unchanged network shop',
      'deleted load-balancer shop',
      'deleted file-share uploads',
    ]);
    expect((await data('network', 'list')).map(({ name }: { name: string }) => name)).toContain('default');
  });

  it('finds and makes a change of the members of a pool', async () => {
    const text = `
- {kind: load-balancer, name: pooled}
- kind: pool
  name: pooled
  protocol: TCP
  lb_algorithm: ROUND_ROBIN
  load_balancer_id: pooled
  members: [{address: 10.1.0.1, protocol_port: 80}, {address: 10.1.0.2, protocol_port: 80}]
`;
    const changed = text.replace('10.1.0.2', '10.1.0.3');
    const diff = (described: string) => run(['diff', '-f', '-', '--exit-code'], described);
    expect(await run(['apply', '-f', '-'], text)).toMatchObject({ code: 0 });
    expect(await diff(text)).toMatchObject({ code: 0, stdout: '' });
    expect(await diff(changed)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^update +pool +pooled +members/m),
    });
    expect(await run(['apply', '-f', '-'], changed)).toMatchObject({ code: 0 });
    const members = await data('pool', 'member', 'list', 'pooled');
    expect(members.map(({ address }: { address: string }) => address).sort()).toEqual(['10.1.0.1', '10.1.0.3']);
    expect(await diff(changed)).toMatchObject({ code: 0, stdout: '' });
  });

  it('adds a volume of the same file to a policy, and removes one that the file omits', async () => {
    const volume = (name: string) => `- {kind: volume, name: ${name}, source: new-volume, size: 1}\n`;
    const policy = (name: string) => `- kind: lifecycle-policy
  name: weekly
  action: volume_snapshot
  schedules: [{type: cron, day_of_week: mon, max_quantity: 2}]
  volume_ids: [${name}]
`;
    const volumes = async () =>
      (await data('lifecycle-policy', 'show', 'weekly', '--need-volumes')).volumes.map(
        (each: { volume_name: string }) => each.volume_name,
      );
    expect(await run(['apply', '-f', '-'], volume('first') + policy('first'))).toMatchObject({ code: 0 });
    expect(await volumes()).toEqual(['first']);
    expect(await run(['apply', '-f', '-'], volume('second') + policy('second'))).toMatchObject({ code: 0 });
    expect(await volumes()).toEqual(['second']);
  });

  it('creates a project and resources in it', async () => {
    const file = join(yard.folder, 'annex.yaml');
    writeFileSync(file, '- {kind: network, name: inner, project: annex}\n- {kind: project, name: annex}\n');
    const apply = () => data('apply', '-f', file, '--columns', 'action,name');
    const rows = (action: string) => [
      { action, name: 'annex' },
      { action, name: 'inner' },
    ];
    expect(await apply()).toEqual(rows('created'));
    expect(await apply()).toEqual(rows('unchanged'));
    writeFileSync(file, '{kind: project, name: annex, description: changed}');
    expect(await apply()).toEqual([{ action: 'updated', name: 'annex' }]);
    expect(await data('project', 'show', 'annex')).toMatchObject({ description: 'changed' });
    expect(await data('project', 'show', '1')).not.toMatchObject({ description: 'changed' });
  });

  it('names every unknown project, region and network with its place, and creates no project', async () => {
    const file = join(yard.folder, 'lost.yaml');
    const lines = [
      '- {kind: network, name: one, region: 99}',
      '- {kind: network, name: two, project: 99}',
      '- {kind: network, name: three, project: nosuch, region: here}',
      '- {kind: project, name: fresh}',
      '- {kind: network, name: four, project: fresh, region: 99}',
      '- {kind: subnet, name: five, network_id: nowhere, cidr: 10.9.0.0/24}',
    ];
    writeFileSync(file, lines.join('\n'));
    const { code, stdout, stderr } = await run(['apply', '-f', file]);
    expect({ code, stdout, errors: stderr.trim().split('\n') }).toEqual({
      code: 1,
      stdout: '',
      errors: [
        `cloudyard: ${file}:1:38: region 99 not found`,
        `${file}:2:39: project 99 not found`,
        `${file}:3:41: project nosuch not found`,
        `${file}:3:57: region here not found`,
        `${file}:5:55: region 99 not found`,
        `${file}:6:3: network nowhere not found`,
      ],
    });
    expect(JSON.stringify(await data('project', 'list'))).not.toContain('fresh');
    // A context of another client may have no such project and region.
    const elsewhere = ['--project', '99', '--region', '99'];
    expect(await run(['diff', '-f', '-', ...elsewhere], '{kind: project, name: fresh}')).toMatchObject({ code: 0 });
    const pruned = await run(['diff', '-f', '-', '--prune', 'a=b', ...elsewhere], lines[3]);
    expect(pruned).toMatchObject({ code: 4, stderr: 'cloudyard: project 99 not found\n' });
  });

  it('names every error with its place and changes nothing', async () => {
    await data('volume', 'create', '--name', 'disk', '--source', 'new-volume', '--size', '1');
    const file = join(yard.folder, 'bad.yaml');
    writeFileSync(file, shop.replace('size: 1', 'size: big').replace('kind: load-balancer', 'kind: balancer'));
    const bad = await run(['apply', '-f', file]);
    expect(bad).toMatchObject({ code: 2, stdout: '' });
    expect(bad.stderr).toMatch(
      new RegExp(`^cloudyard: ${file}:8:7: unknown kind "balancer".*\n${file}:15:9: size must be integer\n$`),
    );
    const lost = await run(['apply', '-f', '-'], shop.replace('network_id: shop', 'network_id: nowhere'));
    expect(lost).toMatchObject({ code: 1, stderr: 'cloudyard: standard input:12:3: network nowhere not found\n' });
    const balancers = (await data('load-balancer', 'list')) as { name: string }[];
    expect(balancers.map(({ name }) => name)).not.toContain('shop');
    const fixed = await run(
      ['diff', '-f', '-'],
      `${shop}\n---\nkind: volume\nname: disk\nsource: new-volume\nsize: 1\ntype_name: cold`,
    );
    expect(fixed).toMatchObject({ code: 1, stdout: '' });
    expect(fixed.stderr).toMatch(/^cloudyard: standard input:\d+:12: volume disk cannot change /m);
    const smaller = '- {kind: volume, name: disk, source: new-volume, size: 1}\n- {kind: network, name: other}';
    await data('volume', 'extend', 'disk', '--size', '2');
    expect(await run(['apply', '-f', '-'], smaller)).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: 'cloudyard: standard input:1:56: volume disk cannot change size: 2 -> 1\n',
    });
    expect(JSON.stringify(await data('network', 'list'))).not.toContain('other');
  });
});
