/** Commands for tokens, clients and quotas while the server runs. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const projects = '/cloud/v1/projects';

describe('operator commands while a server runs', () => {
  let yard: Yard;
  beforeAll(async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' });
    await yard.start(['start']);
  });
  afterAll(() => yard?.cleanUp());

  const output = async (...args: string[]) => {
    const { code, stdout, stderr } = await yard.run(args);
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
    return stdout.trim();
  };
  const status = async (token: string) => (await yard.get(projects, { token })).status;

  it('create a token that works at once, list it without its secret, and revoke it within a second', async () => {
    const token = await output('token', 'create', '--role', 'admin', '--name', 'of a test');
    const [key, secret] = token.split('$');
    expect(await status(token)).toBe(200);
    const listed = (await output('token', 'list')).split('\n').find((line) => line.includes(key!))!;
    expect(listed.split('\t')).toMatchObject({
      1: key,
      2: '1',
      3: 'admin',
      4: 'all',
      5: 'never',
      6: 'no',
      7: 'of a test',
    });
    expect(await output('token', 'list')).not.toContain(secret);

    expect(await output('token', 'revoke', key!)).toBe(`token ${key} revoked; every server refuses it within a second`);
    const revoked = performance.now();
    await until(async () => (await status(token)) === 401, 5, 'the token refused');
    expect(performance.now() - revoked).toBeLessThan(1000);
    expect(await status(`${key}$guessed`)).toBe(401);
    expect(await yard.run(['token', 'revoke', 'nobody'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^cloudyard: token nobody not found; list tokens with: \S.* token list\n$/),
    });
  });

  it('create tokens with a lower role, and tokens that expire', async () => {
    const reader = await output('token', 'create', '--role', 'read-only');
    expect(await status(reader)).toBe(200);
    const body = newShare('refused', await defaultNetwork(yard));
    expect((await yard.post(shares, body, { token: reader })).status).toBe(403);

    let brief = '';
    let seconds = 1;
    const isAccepted = async () => {
      // On a busy machine the command ends after the token has expired.
      seconds *= 2;
      brief = await output('token', 'create', '--expires', `${seconds}s`);
      return (await status(brief)) === 200;
    };
    await until(isAccepted, 60, 'a token that is used before it expires');
    await until(async () => (await status(brief)) === 401, seconds + 10, 'the token expired');
    for (const [expires, listed] of [
      ['2030-01-01', '2030-01-01T00:00:00Z'],
      ['2031-01-01T12:00:00', '2031-01-01T12:00:00Z'],
      ['2032-01-01T12:00:00+02:00', '2032-01-01T10:00:00Z'],
    ]) {
      const { stdout } = await yard.run(['token', 'create', '--expires', expires!], { TZ: 'Europe/Berlin' });
      expect(await status(stdout.trim())).toBe(200);
      expect(await output('token', 'list')).toContain(`\t${listed}\t`);
    }
  });

  it('refuse wrong options and report the reason', async () => {
    for (const [args, why] of [
      [['--role', 'king'], '--role must be one of'],
      [['--client', '99'], 'client 99 not found'],
      [['--project', '99'], 'project 99 of client 1 not found'],
      [['--expires', 'tomorrow'], '--expires must be a duration'],
      [['--expires', '90'], '--expires must be a duration'],
      [['--expires', '12'], '--expires must be a duration'],
      [['--expires', '2030-02-31'], '--expires must be a duration'],
      [['--expires', '2020-01-01'], '--expires 2020-01-01 is in the past'],
      [['--expires', '0d'], '--expires 0d is in the past'],
      [['--name', ''], '--name must have at least 1 character'],
      [['--name', 'n'.repeat(256)], '--name must have at most 255 characters'],
      [['--name', 'a\tb'], '--name must be text without control characters'],
    ] as const) {
      const { code, stderr } = await yard.run(['token', 'create', ...args]);
      expect(code).not.toBe(0);
      expect(stderr).toContain(why);
    }
  });

  it('export the audit log from a date, which is UTC', async () => {
    for (const from of ['90', '2030-02-31', 'today']) {
      const { code, stdout, stderr } = await yard.run(['audit', 'export', '--from', from]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(`--from must be a date such as 2030-01-01 or 2030-01-01T12:00:00Z, not "${from}"`);
    }
    const entries = (await output('audit', 'export', '--operation', 'createToken')).split('\n');
    const at = (JSON.parse(entries[0]!) as { at: string }).at.replace('Z', '');
    const { stdout } = await yard.run(['audit', 'export', '--from', at], { TZ: 'Asia/Tokyo' });
    expect(stdout).toContain(entries[0]);
    expect(stdout).not.toContain(entries.at(-1));
  });

  it('log to standard error, so that standard output has only the result', async () => {
    const region = '{ id: 1, display_name: here, country: LU, price_book: prices.yaml }';
    const regions = join(yard.folder, 'regions.yaml');
    writeFileSync(regions, `regions: [${region}]\n`);
    writeFileSync(join(yard.folder, 'prices.yaml'), 'currency: EUR\ntax_percent: "0"\nunit_hours: {snapshot_gib: x}\n');
    for (const format of ['json', 'pretty']) {
      const own = { CLOUDYARD_REGIONS_FILE: regions, CLOUDYARD_LOG_FORMAT: format };
      const { code, stdout, stderr } = await yard.run(['client', 'list'], own);
      expect({ code, stdout }).toEqual({ code: 0, stdout: await output('client', 'list').then((text) => `${text}\n`) });
      expect(stderr).toContain('the price book is invalid');
    }
  });

  it('create a client that cannot see other clients', async () => {
    const [, clientId, projectId] = /client (\d+) with project (\d+)/.exec(await output('client', 'create', 'Second'))!;
    expect(await output('client', 'list')).toMatch(new RegExp(`^${clientId}\tSecond$`, 'm'));
    const token = await output('token', 'create', '--client', clientId!, '--role', 'admin');
    expect((await yard.get(projects, { token })).body).toMatchObject({
      count: 1,
      results: [{ id: Number(projectId) }],
    });
    expect((await yard.get(shares, { token })).status).toBe(404);
    expect((await yard.get(shares.replace('/1/1', `/${projectId}/1`), { token })).body).toEqual({
      count: 0,
      results: [],
    });
  });

  it('set a quota that applies at once, show it, and restore the default', async () => {
    const body = newShare('within-quota', await defaultNetwork(yard));
    expect(await output('quota', 'set', 'sfs_count=1')).toContain('1\t1\tsfs_count\t1\t0\tfile shares');
    await yard.ended(await yard.post(shares, body));
    const refused = await yard.post(shares, { ...body, name: 'beyond' });
    expect(refused.status).toBe(409);
    expect(refused.headers.get('x-should-retry')).toBe('false');
    expect(refused.body).toMatchObject({
      exception_class: 'QuotaExceeded',
      message: expect.stringContaining('limit 1, in use 1'),
    });
    const listed = (await output('quota', 'list')).split('\n');
    // A reader that closes the pipe early causes no error.
    const piped = `"${process.execPath}" bin/cloudyard.mjs quota list | true`;
    const options = { cwd: root, env: { PATH: process.env['PATH'], ...yard.env } };
    expect((await promisify(execFile)('sh', ['-c', piped], options)).stderr).toBe('');
    expect(listed).toContain('1\t1\tsfs_count\t1\t1\tfile shares');
    expect(listed).toContainEqual(expect.stringMatching(/^1\tglobal\tproject_count\t\d+\t1\tprojects$/));
    await output('quota', 'set', 'sfs_count=default');
    await yard.ended(await yard.post(shares, { ...body, name: 'beyond' }));
    const misspelled = await yard.run(['quota', 'set', 'sfs_cuont=1']);
    expect(misspelled).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean sfs_count?') });
  });

  it('list quota requests, approve one and decline another', async () => {
    const ask = (limit: number) =>
      yard.post('/cloud/v2/limits_request', {
        // Terminals may take U+009B for the start of a command.
        description: 'We \u009b31mgrow.',
        requested_limits: { regional_limits: [{ region_id: 1, volume_count_limit: limit }] },
      });
    expect([(await ask(4000)).status, (await ask(5000)).status]).toEqual([201, 201]);
    expect(await output('quota', 'requests', 'list')).toContain('\t1\tvolume_count=4000\t"We  31mgrow."');
    expect(await output('quota', 'requests', 'approve', '1')).toBe('quota request 1 of client 1 approved');
    expect(await output('quota', 'requests', 'decline', '2', '--reason', 'No space.')).toContain('declined');
    expect((await output('quota', 'list')).split('\n')).toContainEqual(expect.stringMatching(/\tvolume_count\t4000\t/));
    expect(await output('quota', 'requests', 'list')).toBe('No pending quota requests.');
    expect(await output('quota', 'requests', 'list', '--all')).toContain('2\t1\trejected\t');
    expect(await yard.run(['quota', 'requests', 'approve', '2'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('quota request 2 was already declined'),
    });
    expect(await yard.run(['quota', 'requests', 'decline', '2'])).toMatchObject({ code: 2 });
  });
});

describe('operator commands in development mode', () => {
  let yard: Yard;
  afterAll(() => yard?.cleanUp());

  it('use the development clock', async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_DEV: '1' });
    await yard.start(['start']);
    expect((await yard.post('/cloudyard/v1/dev/clock', { advance_seconds: 2 * 86_400 })).status).toBe(200);
    const { stdout } = await yard.run(['token', 'create', '--expires', '1h']);
    expect((await yard.get(projects, { token: stdout.trim() })).status).toBe(200);
  });
});

describe('operator commands with configuration files of their own', () => {
  const openWith = async (setting: string, yaml: string) => {
    const yard = await openYard();
    onTestFinished(yard.cleanUp);
    const file = join(yard.folder, 'own.yaml');
    writeFileSync(file, yaml);
    return (...args: string[]) => yard.run(args, { [setting]: file });
  };

  it('set a global limit without a region', async () => {
    const run = await openWith('CLOUDYARD_REGIONS_FILE', 'regions: [{ id: 7, display_name: far, country: LU }]');
    expect(await run('quota', 'set', 'project_count=5')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1\tglobal\tproject_count\t5\t1\tprojects'),
    });
    const message = 'region 1 not found; the regions file has 7';
    expect(await run('quota', 'set', 'project_count=5', 'sfs_count=1')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(message),
    });
  });

  it('report default limits that allow no client', async () => {
    const run = await openWith('CLOUDYARD_QUOTAS_FILE', 'default_limits: { sfs_count: 5 }');
    expect(await run('client', 'list')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('project_count, network_count and subnet_count must be at least 1'),
    });
  });
});
