/** The deletion of a resource that nothing prevents. */
import { type Command, ok, remove } from '../model.ts';

/** `path`: of the resources of this kind. */
export const deletes = (kind: string, path: string): Command => ({
  name: `delete ${kind}`,
  on: kind,
  method: 'DELETE',
  path: `${path}/{on}`,
  expect(model, { label }) {
    remove(model, label);
    return ok;
  },
});
