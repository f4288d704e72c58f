/**
 * Lifecycle policies with interval schedules, and the clock. The model counts the snapshots of policies for each volume.
 *
 * Units: hours of the moved clock. Intervals and moves are whole hours and everything else takes seconds, so it is certain which
 * runs are due.
 */
import { add, type Command, entitiesOf, type Entity, type Model, ok, type Resource } from '../model.ts';
import { deletes } from './deletion.ts';

const path = '/cloud/v1/lifecycle_policy/{scope}';

interface Schedule {
  hours: number;
  max_quantity: number;
}
/** With the hour of its creation. */
type ModelSchedule = Schedule & { since: number };

const madeByPolicy = ({ tags }: { tags: { key: string }[] }) => tags.some(({ key }) => key === 'created_by_policy');
const hasData = ({ fields }: Entity) => fields['status'] !== 'error';

export const lifecyclePolicies: Resource = {
  kinds: [
    {
      name: 'policy',
      list: `${path}?need_volumes=true`,
      hasIntegerIds: true,
      observe: ({ name, status, schedules, volumes }, label) => ({
        name,
        status,
        schedules: schedules.map(({ hours, max_quantity }: Schedule) => ({ hours, max_quantity })),
        volumes: volumes.map(({ volume_id }: { volume_id: string }) => label(volume_id)).sort(),
      }),
      expected: ({ fields }) => ({
        ...fields,
        schedules: fields['schedules'].map(({ hours, max_quantity }: Schedule) => ({ hours, max_quantity })),
        volumes: [...fields['volumes']].sort(),
      }),
      usage: ({ fields }) => ({ snapshot_schedule_count: fields['schedules'].length }),
    },
    {
      name: 'policy snapshot',
      list: '/cloud/v1/snapshots/{scope}',
      observe: (result) => (madeByPolicy(result as never) ? {} : null),
      countBy: { observed: ({ volume_id }, label) => label(volume_id), expected: ({ parent }) => `@${parent}` },
      usage: ({ fields }) => ({ volume_snapshots_count: 1, volume_snapshots_size: fields['size'] }),
    },
  ],
  commands: [
    {
      name: 'create policy',
      weight: 2,
      creates: 'policy',
      method: 'POST',
      path,
      body({ model, random, label }) {
        const hours = [6, 8, 12].filter(() => random.chance(0.5));
        const schedules = hours.map((each) => ({ type: 'interval', hours: each, max_quantity: 1 + random.int(3) }));
        const volume = random.maybe(entitiesOf(model, 'volume'));
        const volumes = volume ? [`@${volume.label}`] : [];
        return { name: label, action: 'volume_snapshot', schedules, volume_ids: volumes };
      },
      expect(model, _, step) {
        const { name, schedules, volume_ids: volumes } = step.body!;
        const since = schedules.map((schedule: Schedule) => ({ ...schedule, since: model.hours }));
        add(model, 'policy', step, { name, status: 'active', schedules: since, volumes });
        return ok;
      },
    },
    {
      name: 'update policy',
      on: 'policy',
      method: 'PATCH',
      path: `${path}/{on}`,
      body: ({ random }) => ({ name: `policy ${random.int(5)}`, status: random.pick(['active', 'paused']) }),
      expect(_model, { fields }, { body }) {
        Object.assign(fields, body);
        return ok;
      },
    },
    volumesCommand('add volume to policy', 'add_volumes_to_policy', (before, volume) => [
      ...new Set([...before, volume]),
    ]),
    volumesCommand('remove volume from policy', 'remove_volumes_from_policy', (before, volume) =>
      before.filter((other) => other !== volume),
    ),
    deletes('policy', path),
    {
      name: 'advance the clock',
      weight: 3,
      operator: true,
      alone: true,
      method: 'POST',
      path: '/cloudyard/v1/dev/clock',
      when: (model) => entitiesOf(model, 'policy').some(({ fields }) => fields['volumes'].length > 0),
      body: ({ random }) => ({ advance_seconds: 3600 * (1 + random.int(24)) }),
      expect(model, _, { body }) {
        for (let left = body!['advance_seconds'] / 3600; left > 0; left--) {
          model.hours += 1;
          runDue(model);
        }
        return ok;
      },
    },
  ],
};

function volumesCommand(name: string, action: string, change: (before: string[], volume: string) => string[]): Command {
  return {
    name,
    on: 'policy',
    method: 'PUT',
    path: `${path}/{on}/${action}`,
    body({ model, random }) {
      const volume = random.maybe(entitiesOf(model, 'volume'));
      return volume ? { volume_ids: [`@${volume.label}`] } : null;
    },
    expect(_model, { fields }, { body }) {
      fields['volumes'] = change(fields['volumes'], body!['volume_ids'][0]);
      return ok;
    },
  };
}

/** The runs of this hour. Each makes a snapshot of each volume and deletes those beyond `max_quantity`. */
function runDue(model: Model): void {
  for (const policy of entitiesOf(model, 'policy')) {
    if (policy.fields['status'] !== 'active') continue;
    for (const [i, schedule] of (policy.fields['schedules'] as ModelSchedule[]).entries()) {
      const age = model.hours - schedule.since;
      if (age === 0 || age % schedule.hours !== 0) continue;
      for (const volume of policy.fields['volumes']) run(model, `${policy.label} ${i}`, schedule, volume.slice(1));
    }
  }
}

function run(model: Model, schedule: string, { max_quantity }: Schedule, volume: string): void {
  const entity = model.entities[volume];
  if (!entity || !hasData(entity)) return;
  const label = `${schedule} ${volume} ${model.hours}`;
  const fields = { schedule, size: entity.fields['size'], status: 'available' };
  model.entities[label] = { kind: 'policy snapshot', label, parent: volume, fields };
  const made = entitiesOf(model, 'policy snapshot').filter(
    (snapshot) => snapshot.parent === volume && snapshot.fields['schedule'] === schedule,
  );
  for (const old of made.slice(0, Math.max(0, made.length - max_quantity))) delete model.entities[old.label];
}
