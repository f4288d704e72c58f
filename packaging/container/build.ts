/** Builds the container image from the Debian packages with podman or buildah, which have the same commands for it. */
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sourceDate } from '../source-date.ts';

interface Options {
  tool: string;
  /** Contains the Debian packages, and gets the image. */
  folder: string;
  version: string;
  /** Name of an image of Debian 12 or newer. */
  base: string;
  /** Options of the tool that name another storage. */
  storage?: string[];
}

export function imageTool(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(':');
  return ['podman', 'buildah'].find((name) => folders.some((folder) => folder && existsSync(join(folder, name))));
}

/** Returns the archive, which `podman load` and `docker load` read. */
export function buildImage({ tool, folder, version, base, storage = [] }: Options): string {
  const name = `localhost/cloudyard:${version}`;
  const file = join(folder, `cloudyard-${version}-image.tar`);
  const settings = ['--build-arg', `BASE=${base}`, '--build-arg', `VERSION=${version}`];
  // The format of OCI has no health check.
  const format = ['--format', 'docker', '--timestamp', String(sourceDate())];
  const containerfile = join(import.meta.dirname, 'Containerfile');
  const run = (...args: string[]) =>
    execFileSync(tool, [...storage, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  run('build', ...format, ...settings, '--tag', name, '--file', containerfile, folder);
  // An existing archive is not replaced.
  rmSync(file, { force: true });
  run('push', '--quiet', name, `docker-archive:${file}:${name}`);
  return file;
}
