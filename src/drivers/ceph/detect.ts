/** Whether this host can use a Ceph cluster: Debian's Python and its bindings of librados and librbd. */
import { existsSync, globSync } from 'node:fs';
import type { HostProgram } from '../kind.ts';
import { PYTHON } from './bridge.ts';

const folder = '/usr/lib/python3/dist-packages';

/** A Python module of Debian as a program that `doctor` checks. */
export const bindingOf = (name: string): HostProgram => ({
  name: `Python module ${name}`,
  package: `python3-${name}`,
  find: () => globSync(`${folder}/${name}.*.so`)[0] ?? null,
});

export const cephPrograms: HostProgram[] = [
  { name: 'python3', package: 'python3', find: () => (existsSync(PYTHON) ? PYTHON : null) },
  bindingOf('rados'),
  bindingOf('rbd'),
];
