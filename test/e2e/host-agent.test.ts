/** The agent of a host as a process: how it ends when it cannot continue. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { root } from '../../src/main/root.ts';
import { openYard, query } from '../processes.ts';
import type { Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { startSystemPostgres } from '../system-postgres.ts';

describe.skipIf(!requires('postgresql'))(skipReason('postgresql') ?? 'an agent', () => {
  let yard: Yard;
  let postgres: Awaited<ReturnType<typeof startSystemPostgres>> | undefined;

  afterEach(async () => {
    await postgres?.stop();
    yard?.cleanUp();
  });

  it('whose name another one took ends with a code for which its supervisor starts it again', async () => {
    yard = await openYard({ DATABASE_URL: 'unused' });
    postgres = await startSystemPostgres(yard.folder, 'cloudyard');
    const [keyFile, config] = [join(yard.folder, 'secret.keys'), join(yard.folder, 'config')];
    cpSync(join(root, 'config'), config, { recursive: true });
    const regions = join(config, 'regions.yaml');
    const shipped = readFileSync(regions, 'utf8');
    writeFileSync(regions, shipped.replace(/^( +)vip_range:/m, '$1hosts: { lease_seconds: 5 }\n$&'));
    writeFileSync(keyFile, `1 ${Buffer.alloc(32).toString('base64')}\n`, { mode: 0o600 });
    const agent = await yard.start(['host', '--region', '1'], {
      ...{ DATABASE_URL: postgres.url, CLOUDYARD_KEY_FILE: keyFile, CLOUDYARD_REGIONS_FILE: regions },
      ...{ CLOUDYARD_HOST_NAME: 'h1', CLOUDYARD_HOST_ADDRESS: '127.0.0.1' },
    });
    await query(
      { connectionString: postgres.url },
      `update hosts set incarnation = gen_random_uuid(), lease_until = now() + interval '1 hour'`,
    );
    const { code } = await agent.ended;
    expect(agent.log()).toContainEqual(
      expect.objectContaining({
        msg: 'the agent stops',
        err: expect.objectContaining({
          message: expect.stringContaining('another agent is the host h1 of region 1') as string,
        }) as object,
      }),
    );
    expect(code).toBe(1);
  }, 180_000);
});
