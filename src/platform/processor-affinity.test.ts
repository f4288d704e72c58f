import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { bindToProcessor, usableProcessors } from './processor-affinity.ts';

it.each([
  ['0', [0]],
  ['0-3', [0, 1, 2, 3]],
  ['1,4-5,9', [1, 4, 5, 9]],
])('reads the processors %s', (list, numbers) => {
  expect(usableProcessors(`Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${list}\n`)).toEqual(numbers);
});

it('knows no processors where the kernel does not name them', () => {
  expect(usableProcessors('')).toEqual([]);
});

it('binds a process to one processor', async () => {
  const child = spawn('sleep', ['60']);
  try {
    const processor = usableProcessors().at(-1)!;
    await bindToProcessor(child.pid!, processor);
    expect(usableProcessors(readFileSync(`/proc/${child.pid}/status`, 'utf8'))).toEqual([processor]);
  } finally {
    child.kill('SIGKILL');
  }
});
