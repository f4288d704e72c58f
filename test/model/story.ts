/** Makes random stories. A story is chosen on the model alone, before anything is sent, so that a seed repeats it. */
import {
  type Command,
  type Disturbance,
  entitiesOf,
  type Entity,
  type Group,
  type Model,
  rootOf,
  type Step,
  type Story,
} from './model.ts';
import { createRandom, type Random } from './random.ts';
import { commandOf, themes } from './resources/list.ts';
import { expectStep } from './expectation.ts';

interface StoryOptions {
  groups: number;
  /** The probability that processes are killed or restarted during a group. */
  disturbed: number;
}

/** Limits that a story starts with: small ones are reached, absent ones are not. */
const smallLimits: Record<string, number> = {
  sfs_count: 3,
  sfs_size: 8,
  volume_count: 3,
  volume_size: 8,
  network_count: 4,
  subnet_count: 4,
  loadbalancer_count: 2,
  registry_storage: 8,
  secret_count: 2,
  snapshot_schedule_count: 4,
};

export function limitsOf(seed: number): Record<string, number> {
  const random = createRandom(seed ^ 0x5bd1e995);
  return Object.fromEntries(Object.entries(smallLimits).filter(() => random.chance(0.4)));
}

/** `first`: the model of a new client. */
export function makeStory(seed: number, first: Model, { groups, disturbed }: StoryOptions): Story {
  const random = createRandom(seed);
  const choices = chooseThemes(random);
  let model: Model = structuredClone(first);
  const story: Story = [];
  let count = 0;
  while (story.length < groups) {
    const group = makeGroup(random, model, () => (count += 1), { choices, disturbed });
    for (const step of group.steps) model = expectStep(model, step, group.fault).after;
    story.push(group);
  }
  return story;
}

/** The commands of some themes. */
function chooseThemes(random: Random): Command[] {
  const chosen = themes.filter(() => random.chance(0.4));
  const all = chosen.length > 0 ? chosen : [random.pick(themes)];
  return all.flat().flatMap((resource) => resource.commands);
}

interface GroupOptions {
  choices: Command[];
  disturbed: number;
}

function makeGroup(random: Random, model: Model, next: () => number, { choices, disturbed }: GroupOptions): Group {
  const first = makeStep(random, model, next, choices);
  const command = commandOf(first.command);
  if (command.alone) return { steps: [first] };
  const succeeds = expectStep(model, first).reply.status < 300;
  if (command.fault && succeeds && random.chance(0.15)) return { steps: [first], fault: true };
  const more = random.chance(0.6) ? 0 : 1 + random.int(3);
  const steps = [first];
  // Every step is chosen on the model before the group: they run at the same time.
  const others = choices.filter((other) => !other.alone);
  const isRelated = isRelatedTo(random, model, first);
  for (let i = 0; i < more; i++) steps.push(makeStep(random, model, next, others, isRelated));
  if (!random.chance(disturbed)) return { steps };
  return { steps, disturbance: makeDisturbance(random) };
}

function makeDisturbance(random: Random): Disturbance {
  if (random.chance(0.3)) return { kind: 'crash', process: 'worker', moment: random.pick(['before', 'after']) };
  if (random.chance(0.4)) return { kind: 'crash', process: 'server' };
  return {
    kind: random.pick(['kill', 'kill', 'restart']),
    process: random.pick(['server', 'worker', 'postgres']),
    delayMs: random.int(25),
  };
}

/** Half of the simultaneous steps concern the resource of the first step, so that they get in each other's way. */
function isRelatedTo(random: Random, model: Model, { on }: Step): (entity: Entity) => boolean {
  if (on === null || random.chance(0.5)) return () => true;
  const root = rootOf(model, on);
  return ({ label }) => rootOf(model, label) === root;
}

export function makeStep(
  random: Random,
  model: Model,
  next: () => number,
  choices: readonly Command[],
  isEligible: (entity: Entity) => boolean = () => true,
): Step {
  const weighted = choices.flatMap((command) => Array<Command>(command.weight ?? 1).fill(command));
  for (;;) {
    const command = random.pick(weighted);
    const entity = command.on === undefined ? null : random.maybe(entitiesOf(model, command.on).filter(isEligible));
    if (command.on !== undefined && !entity) continue;
    if (command.when && !command.when(model, entity!)) continue;
    const label = command.creates === undefined ? null : `${command.creates}${next()}`;
    const body = command.body?.({ model, entity: entity!, random, label: label ?? '' });
    if (body === null) continue;
    return { command: command.name, on: entity?.label ?? null, label, body: body ?? null };
  }
}
