import { expect, it } from 'vitest';
import type { Step, Story } from './model.ts';
import { shrink } from './shrink.ts';

const step = (command: string): Step => ({ command, on: null, label: null, body: null });
const story: Story = 'abcdefghijklmnop'.split('').map((command) => ({ steps: [step(command)] }));
const commandsOf = (of: Story) => of.map(({ steps }) => steps.map(({ command }) => command).join(''));
const has = (of: Story, ...commands: string[]) => {
  const all = commandsOf(of).join(' ');
  return commands.every((command) => all.includes(command));
};

it('finds the two groups that a failure needs', async () => {
  const found = await shrink(story, async (candidate) => has(candidate, 'c', 'n'));
  expect(commandsOf(found)).toEqual(['c', 'n']);
});

it('removes simultaneous steps that a failure does not need', async () => {
  const together: Story = [{ steps: [step('a'), step('b'), step('c')] }, ...story.slice(3)];
  const found = await shrink(together, async ([group]) => group!.steps.length > 1 && has([group!], 'a', 'b'));
  expect(commandsOf(found)).toEqual(['ab']);
});

it('prefers steps one after another, and no disturbance', async () => {
  const disturbed: Story = [{ steps: [step('a'), step('b')], disturbance: { kind: 'crash', process: 'server' } }];
  const found = await shrink(disturbed, async (candidate) => has(candidate, 'a', 'b'));
  expect(found).toEqual([{ steps: [step('a')] }, { steps: [step('b')] }]);
});

it('keeps a disturbance that the failure needs', async () => {
  const disturbance = { kind: 'crash', process: 'server' } as const;
  const disturbed: Story = [...story.slice(0, 5), { steps: [step('x')], disturbance }];
  const found = await shrink(disturbed, async (candidate) => candidate.some((group) => group.disturbance));
  expect(found).toEqual([{ steps: [step('x')], disturbance }]);
});

it('plays no more stories than allowed', async () => {
  let plays = 0;
  const found = await shrink(story, async () => ((plays += 1), false), 7);
  expect(plays).toBe(7);
  expect(found).toEqual(story);
});
