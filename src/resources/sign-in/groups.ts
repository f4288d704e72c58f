/** The file that maps groups of the provider to what their members may do. */
import { type Static, Type } from 'typebox';
import { roles } from '../../authz/actor.ts';
import { errorsOfRepeated } from '../../errors/catalogue.ts';
import { readYamlFile } from '../../platform/yaml-file.ts';

const Entry = Type.Object(
  {
    group: Type.String({ minLength: 1, maxLength: 500 }),
    client: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
    role: Type.Enum([...roles]),
    projects: Type.Optional(
      Type.Array(Type.Integer({ minimum: 1, maximum: 2_147_483_647 }), {
        minItems: 1,
        maxItems: 1000,
        uniqueItems: true,
      }),
    ),
  },
  { additionalProperties: false },
);
export type GroupEntry = Static<typeof Entry>;

export const GroupsFile = Type.Object(
  { groups: Type.Array(Entry, { minItems: 1, maxItems: 10_000 }) },
  { additionalProperties: false },
);

/** @throws ConfigurationFileError with file, line and column of each error */
export function readGroups(file: string): GroupEntry[] {
  const repeated = (names: string[]) =>
    errorsOfRepeated(names, (at, first) => ({
      path: `groups.${at}.group`,
      message: `is listed twice, also as groups.${first}`,
    }));
  return readYamlFile(file, GroupsFile, ({ groups }) => repeated(groups.map(({ group }) => group))).groups;
}

/** The first entry of a group of the person; undefined without one. */
export function entryOf(entries: GroupEntry[], groups: readonly string[]): GroupEntry | undefined {
  return entries.find(({ group }) => groups.includes(group));
}
