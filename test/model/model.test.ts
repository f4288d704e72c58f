/**
 * Random stories of operations against the model, with kills, restarts and faults. A failing story is shortened and printed as
 * curl commands.
 *
 * TEST_MODEL_SECONDS: how long to play (60). Half of the time repeats a fixed seed, the other half has a random one, which is
 * printed; TEST_MODEL_SEED sets it.
 */
import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toCurl } from './curl.ts';
import type { Story } from './model.ts';
import { type Failure, newClientModel, play } from './play.ts';
import { shrink } from './shrink.ts';
import { limitsOf, makeStory } from './story.ts';
import { openWorld, type World } from './world.ts';

const seconds = Number(process.env['TEST_MODEL_SECONDS'] ?? 60);
const randomSeed = Number(process.env['TEST_MODEL_SEED'] ?? randomInt(2 ** 31));
const fixedSeed = 1;
const options = { groups: 20, disturbed: 0.04 };

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world?.close());

it.each([
  ['a fixed seed', fixedSeed],
  ['a random seed', randomSeed],
])(
  'the server equals the model in stories of %s (%i)',
  { timeout: seconds * 1000 + 1_200_000 },
  async (_, firstSeed) => {
    const until = performance.now() + (seconds * 1000) / 2;
    let [stories, steps] = [0, 0];
    for (let seed = firstSeed; performance.now() < until; seed++) {
      const limits = limitsOf(seed);
      const story = makeStory(seed, newClientModel(limits), options);
      const failure = await play(world, story, limits);
      if (failure) expect.fail(await report(seed, story, limits, failure));
      stories += 1;
      steps += story.flatMap((group) => group.steps).length;
    }
    console.info(`${stories} stories with ${steps} steps, seeds ${firstSeed} to ${firstSeed + stories - 1}`);
    expect(stories).toBeGreaterThan(0);
  },
);

async function report(seed: number, story: Story, limits: Record<string, number>, failure: Failure): Promise<string> {
  let last = failure;
  const shortest = await shrink(story.slice(0, failure.at + 1), async (candidate) => {
    const found = await play(world, candidate, limits);
    if (found) last = found;
    return found !== null;
  });
  // A shorter story may fail for another reason.
  const whole = last.message === failure.message ? '' : `\n\nThe whole story:\n${failure.message}`;
  return `seed ${seed}: ${last.message}\n\nThe shortest story that fails:\n${toCurl(shortest, limits)}${whole}`;
}
