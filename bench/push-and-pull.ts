/** Pushes and pulls with skopeo: a registry of Cloudyard, against a bare distribution without authentication. */
import { execFileSync, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../test/free-port.ts';
import { makeImage, pull, push, type Skopeo } from '../test/images.ts';
import { startCloudyard } from './cloudyard.ts';
import { findProgram } from './programs.ts';
import { interleave, median, ratios } from './rounds.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const rounds = 5;
const mib = 1024 * 1024;
const imageMib = 100;
const credentials = 'bench:bench';

export async function pushAndPull(workplace: Workplace): Promise<Row[]> {
  const program = findProgram('docker-registry');
  const missing = [!program && 'docker-registry', !findProgram('skopeo') && 'skopeo'].filter(Boolean);
  if (!program || missing.length > 0) return [{ what: 'images', why: `skipped: ${missing.join(', ')} not installed` }];
  const targets = { ours: await cloudyardRegistry(workplace), bare: await bareRegistry(workplace, program) };
  await pushed(workplace, targets.ours, 'warm-up');
  await pushed(workplace, targets.bare, 'warm-up');
  const side = (target: string, way: (image: string) => Promise<number>) => {
    let round = 0;
    return () => way(`${target}/image-${(round += 1)}:v1`);
  };
  const sides = (way: (target: string) => () => Promise<number>) =>
    interleave(rounds, { ours: way(targets.ours), bare: way(targets.bare) });
  // Every push has other bytes, because skopeo does not send layers again that a registry has.
  const pushes = await sides((target) => side(target, (image) => pushed(workplace, image)));
  const pulls = await sides((target) => side(target, (image) => pulled(workplace, image)));
  const row = (what: string, { ours, bare }: Record<'ours' | 'bare', number[]>): Row => ({
    what: `${what} of an image of ${imageMib} MiB by skopeo`,
    measured: perSecond(ours),
    peer: `bare distribution ${perSecond(bare)}`,
    values: ratios(ours, bare),
    unit: 'ratio',
    bar: { atLeast: 0.9 },
  });
  return [row('push', pushes), row('pull', pulls)];
}

const perSecond = (values: number[]) => `${Math.round(median(values))} MiB/s`;

async function cloudyardRegistry(workplace: Workplace): Promise<string> {
  const port = String(await freePort());
  const settings = { CLOUDYARD_REGISTRY_DRIVER: 'distribution', CLOUDYARD_REGISTRY_PORT: port };
  const cloudyard = await startCloudyard(workplace, { command: 'start', settings });
  const path = '/cloud/v1/registries/1/1';
  const { id, url } = await cloudyard.request('POST', path, { name: 'bench', storage_limit: 100 });
  const [name, secret] = credentials.split(':');
  await cloudyard.request('POST', `${path}/${id}/users`, { name, secret, duration: 1 });
  return url;
}

/** Starts distribution with Debian's configuration, without users. */
async function bareRegistry(workplace: Workplace, program: string): Promise<string> {
  const addr = `127.0.0.1:${await freePort()}`;
  const file = join(workplace.dir, 'bare.yml');
  const storage = {
    cache: { blobdescriptor: 'inmemory' },
    filesystem: { rootdirectory: join(workplace.dir, 'bare') },
    delete: { enabled: true },
  };
  writeFileSync(file, JSON.stringify({ version: '0.1', log: { level: 'warn' }, storage, http: { addr } }));
  const child = spawn(program, ['serve', file], { stdio: 'ignore' });
  workplace.closing(async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill();
    await gone;
  });
  const isUp = () =>
    fetch(`http://${addr}/v2/`).then(
      ({ ok }) => ok,
      () => false,
    );
  for (let tries = 0; !(await isUp()); tries += 1) if (tries > 10_000) throw new Error('distribution does not start');
  return `${addr}/bench`;
}

/** MiB a second. */
async function pushed(workplace: Workplace, image: string, tag?: string): Promise<number> {
  const folder = join(workplace.dir, 'image');
  const { source } = makeImage(folder, [imageMib * mib]);
  const figure = await timed(() => push(source, tag ? `${image}/warm:${tag}` : image, credentials));
  rmSync(folder, { recursive: true });
  return figure;
}

async function pulled(workplace: Workplace, image: string): Promise<number> {
  const folder = join(workplace.dir, 'pulled');
  const figure = await timed(() => pull(image, folder, credentials));
  rmSync(folder, { recursive: true });
  return figure;
}

/** Times a command after earlier writes are flushed, so that neither side pays for the other. */
async function timed(start: () => Skopeo): Promise<number> {
  execFileSync('sync');
  const began = performance.now();
  const { code, output } = await start().ended;
  const seconds = (performance.now() - began) / 1000;
  if (code !== 0) throw new Error(`skopeo: ${output}`);
  return imageMib / seconds;
}
