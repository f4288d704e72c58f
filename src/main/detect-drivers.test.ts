/** The drivers that `doctor` lists, beside a worker with a data directory of its own. */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../test/free-port.ts';
import { requires } from '../../test/requires.ts';
import { liveProcess } from '../platform/running-processes.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { detectDrivers } from './drivers.ts';
import { readSettings } from './settings.ts';

it.runIf(requires('docker-registry'))(
  'a daemon of a running worker counts as its driver, also for others',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-detect-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [server, worker] = [join(folder, 'api'), join(folder, 'worker')];
    for (const each of [server, join(worker, 'registries')]) mkdirSync(each, { recursive: true });
    const port = await freePort();
    const log = openSync(join(worker, 'registries', 'daemon.log'), 'a');
    const program = `require('net').createServer().listen(${port}, () => process.send('listening'))`;
    const daemon = spawn(process.execPath, ['-e', program], { stdio: ['ignore', log, log, 'ipc'] });
    closeSync(log);
    onTestFinished(async () => {
      daemon.kill('SIGKILL');
      await once(daemon, 'exit');
    });
    await once(daemon, 'message');
    const settings = { CLOUDYARD_DATA_DIR: server, CLOUDYARD_REGISTRY_PORT: String(port) };
    const detect = async () =>
      (await detectDrivers(readSettings(settings, checkoutPlaces(folder), false), null))['registries'];

    expect(await detect()).toMatchObject({ real: false, detail: expect.stringContaining(`port ${port} is in use by`) });
    const started = liveProcess(daemon.pid!)!.startTime;
    writeFileSync(join(worker, 'worker.pid'), `${daemon.pid} ${started} ${worker}\n`);
    expect(await detect()).toEqual({
      ...{ driver: 'distribution', real: true, healthy: true },
      detail: `used by the worker of ${worker}`,
    });
  },
);
