/** Volumes and their snapshots, which lock together. */
import { add, childrenOf, entitiesOf, type Entity, type Model, ok, refused, remove, type Resource } from '../model.ts';
import { deletes } from './deletion.ts';
import { patchTags, someTags, tagCommands, tagsOf, tagsPatch } from './tags.ts';

const volumesPath = '/cloud/v1/volumes/{scope}';
const snapshotsPath = '/cloud/v1/snapshots/{scope}';
const hasData = ({ fields }: Entity) => fields['status'] !== 'error';
const snapshotsOf = (model: Model, label: string) =>
  childrenOf(model, label).filter(({ kind }) => kind === 'snapshot' || kind === 'policy snapshot');

export const volumes: Resource = {
  kinds: [
    {
      name: 'volume',
      list: volumesPath,
      createdAs: 'volumes',
      observe: ({ name, size, status, tags }) => ({ name, size, status, tags: tagsOf(tags) }),
      usage: ({ fields }) => ({ volume_count: 1, volume_size: fields['size'] }),
      host: {
        folder: 'volume',
        observe: ({ sizeGib }) => ({ sizeGib }),
        expected: ({ fields }) => (fields['status'] === 'error' ? null : { sizeGib: fields['size'] }),
      },
    },
    {
      name: 'snapshot',
      list: snapshotsPath,
      createdAs: 'snapshots',
      observe: ({ name, size, status, tags, volume_id }, label) =>
        // Those of policies have a kind of their own.
        tags.some(({ key }: { key: string }) => key === 'created_by_policy')
          ? null
          : { name, size, status, tags: tagsOf(tags), volume: label(volume_id) },
      usage: ({ fields }) => ({ volume_snapshots_count: 1, volume_snapshots_size: fields['size'] }),
      host: {
        folder: 'snapshot',
        observe: () => ({}),
        expected: ({ fields }) => (fields['status'] === 'error' ? null : {}),
      },
    },
  ],
  commands: [
    {
      name: 'create volume',
      weight: 2,
      creates: 'volume',
      method: 'POST',
      path: volumesPath,
      body(choice) {
        const from = choice.random.chance(0.3) && choice.random.maybe(entitiesOf(choice.model, 'snapshot'));
        const given = { name: choice.label, tags: someTags(choice) };
        if (from) return { ...given, source: 'snapshot', snapshot_id: `@${from.label}`, size: from.fields['size'] };
        return { ...given, source: 'new-volume', size: 1 + choice.random.int(4) };
      },
      expect(model, _, step) {
        const { name, size, tags, snapshot_id: from } = step.body!;
        if (from && model.entities[from.slice(1)]!.fields['status'] !== 'available') return refused(409, 'Conflict');
        add(model, 'volume', step, { name, size, tags: { ...tags }, status: 'available' });
        return ok;
      },
      fault: {
        resource: 'volume',
        operation: 'apply',
        expect: (model, _, step) => void (model.entities[step.label!]!.fields['status'] = 'error'),
      },
    },
    {
      name: 'extend volume',
      on: 'volume',
      method: 'POST',
      path: `${volumesPath}/{on}/extend`,
      body: ({ entity, random }) => ({ size: Math.max(1, entity.fields['size'] + random.int(4) - 1) }),
      expect(_model, entity, { body }) {
        if (!hasData(entity)) return refused(409, 'Conflict');
        if (body!['size'] < entity.fields['size']) return refused(400);
        entity.fields['size'] = body!['size'];
        return ok;
      },
    },
    {
      name: 'update volume',
      on: 'volume',
      method: 'PATCH',
      path: `${volumesPath}/{on}`,
      body: (choice) => ({ name: `volume ${choice.random.int(5)}`, tags: tagsPatch(choice) }),
      expect(_model, { fields }, { body }) {
        fields['name'] = body!['name'];
        patchTags(fields, body!['tags']);
        return ok;
      },
    },
    ...tagCommands('volume', `${volumesPath}/{on}`),
    {
      name: 'revert volume',
      on: 'volume',
      method: 'POST',
      path: `${volumesPath}/{on}/revert`,
      expect(model, entity) {
        const good = snapshotsOf(model, entity.label).some(({ fields }) => fields['status'] === 'available');
        return good ? ok : refused(409, 'Conflict');
      },
    },
    {
      name: 'delete volume',
      on: 'volume',
      method: 'DELETE',
      path: `${volumesPath}/{on}`,
      expect(model, { label }) {
        for (const { fields } of entitiesOf(model, 'policy')) {
          fields['volumes'] = fields['volumes'].filter((volume: string) => volume !== `@${label}`);
        }
        remove(model, label);
        return ok;
      },
    },
    {
      name: 'create snapshot',
      weight: 2,
      creates: 'snapshot',
      method: 'POST',
      path: snapshotsPath,
      body(choice) {
        const volume = choice.random.maybe(entitiesOf(choice.model, 'volume'));
        return volume ? { name: choice.label, volume_id: `@${volume.label}`, tags: someTags(choice) } : null;
      },
      expect(model, _, step) {
        const { name, volume_id, tags } = step.body!;
        const volume = model.entities[volume_id.slice(1)]!;
        if (!hasData(volume)) return refused(409, 'Conflict');
        const fields = { name, tags: { ...tags }, size: volume.fields['size'], status: 'available', volume: volume_id };
        add(model, 'snapshot', step, fields, volume.label);
        return ok;
      },
      fault: {
        resource: 'snapshot',
        operation: 'apply',
        expect: (model, _, step) => void (model.entities[step.label!]!.fields['status'] = 'error'),
      },
    },
    {
      name: 'update snapshot',
      on: 'snapshot',
      method: 'PATCH',
      path: `${snapshotsPath}/{on}`,
      body: (choice) => ({ name: `snapshot ${choice.random.int(5)}`, tags: tagsPatch(choice) }),
      expect(_model, { fields }, { body }) {
        fields['name'] = body!['name'];
        patchTags(fields, body!['tags']);
        return ok;
      },
    },
    ...tagCommands('snapshot', `${snapshotsPath}/{on}`),
    deletes('snapshot', snapshotsPath),
  ],
};
