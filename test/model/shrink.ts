/** Shortens a failing story: removes groups, steps and disturbances as long as the story still fails. */
import type { Story } from './model.ts';

/** `fails` plays a story and returns whether it fails. `attempts` bounds the plays. */
export async function shrink(
  story: Story,
  fails: (candidate: Story) => Promise<boolean>,
  attempts = 100,
): Promise<Story> {
  let best = story;
  let left = attempts;
  const tries = async (candidate: Story): Promise<boolean> => {
    if (left === 0 || candidate.length === 0) return false;
    left -= 1;
    if (!(await fails(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let end = best.length; end > 0; end -= size) {
      const start = Math.max(0, end - size);
      await tries([...best.slice(0, start), ...best.slice(end)]);
    }
  }
  for (let again = true; again; ) {
    again = false;
    for (const candidate of simpler(best)) {
      if (await tries(candidate)) {
        again = true;
        break;
      }
    }
  }
  return best;
}

/** Stories that are simpler in one place. */
function* simpler(story: Story): Generator<Story> {
  const withGroup = (i: number, groups: Story) => [...story.slice(0, i), ...groups, ...story.slice(i + 1)];
  for (const [i, group] of story.entries()) {
    if (story.length > 1) yield withGroup(i, []);
    if (group.disturbance) yield withGroup(i, [{ steps: group.steps }]);
    if (group.steps.length < 2) continue;
    for (const step of group.steps) {
      yield withGroup(i, [{ ...group, steps: group.steps.filter((other) => other !== step) }]);
    }
    if (!group.disturbance) {
      yield withGroup(
        i,
        group.steps.map((step) => ({ steps: [step] })),
      );
    }
  }
}
