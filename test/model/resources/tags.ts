/** The operations on tags, which many resources share. The model keeps tags as a map in `tags`. */
import { type Choice, type Command, type Fields, ok, refused } from '../model.ts';

type Tags = Record<string, string>;

export const tagsOf = (list: { key: string; value: string; read_only: boolean }[]): Tags =>
  Object.fromEntries(list.filter((tag) => !tag.read_only).map(({ key, value }) => [key, value]));

export const someTags = ({ random }: Pick<Choice, 'random'>): Tags =>
  Object.fromEntries(Array.from({ length: random.int(3) }, () => [`key${random.int(3)}`, `value${random.int(3)}`]));

/** A merge patch of tags: null removes one. */
export const tagsPatch = (choice: Choice): Record<string, string | null> => {
  const { random } = choice;
  return random.chance(0.3) ? { [`key${random.int(3)}`]: null } : someTags(choice);
};

export function patchTags(fields: Fields, patch: Record<string, string | null> | null | undefined): void {
  if (patch === null) fields['tags'] = {};
  for (const [key, value] of Object.entries(patch ?? {})) {
    if (value === null) delete fields['tags'][key];
    else fields['tags'][key] = value;
  }
}

/** `path`: of one resource, without `/metadata`. */
export function tagCommands(kind: string, path: string): Command[] {
  return [
    {
      name: `add tags of ${kind}`,
      on: kind,
      method: 'POST',
      path: `${path}/metadata`,
      body: (choice) => someTags(choice),
      expect(_model, { fields }, { body }) {
        patchTags(fields, body);
        return ok;
      },
    },
    {
      name: `replace tags of ${kind}`,
      on: kind,
      method: 'PUT',
      path: `${path}/metadata`,
      body: (choice) => someTags(choice),
      expect(_model, { fields }, { body }) {
        fields['tags'] = { ...body };
        return ok;
      },
    },
    {
      name: `remove tag key0 of ${kind}`,
      on: kind,
      method: 'DELETE',
      path: `${path}/metadata_item?key=key0`,
      expect(_model, { fields }) {
        if (!Object.hasOwn(fields['tags'], 'key0')) return refused(404);
        delete fields['tags']['key0'];
        return ok;
      },
    },
  ];
}
