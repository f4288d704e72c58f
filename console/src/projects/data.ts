import type { components } from '../api/openapi.d.ts';

export type Project = components['schemas']['Project'];

export const KIND = 'projects';

/** Why a project cannot be deleted; null when it can, once it is empty. */
export function undeletableReason({ is_default }: Project): string | null {
  return is_default ? 'The default project cannot be deleted' : null;
}
