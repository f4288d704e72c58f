import type { components } from '../api/openapi.d.ts';

export type Project = components['schemas']['Project'];

/** First part of the keys of all queries of projects: events of this kind refresh them, and the switcher. */
export const KIND = 'projects';

/** Why a project cannot be deleted; null when it can, once it is empty. */
export function undeletableReason({ is_default }: Project): string | null {
  return is_default ? 'The default project cannot be deleted' : null;
}
