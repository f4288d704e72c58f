/** The published state of a file share: everything that the host of its group needs to export it. */
import { hash } from 'node:crypto';
import type { DesiredFileShare } from '../file-share.ts';

export interface PublishedShare extends Pick<DesiredFileShare, 'rootSquash' | 'access'> {
  /** The address of its group. */
  group: string;
  /** Ganesha's number of the export. It never changes, because it is part of the clients' file handles. */
  exportId: number;
  filesystem: string;
  /** The exported folder of the filesystem. */
  path: string;
  /** The size that the export must show to clients, GiB. Null: it has no quota. */
  sizeGib: number | null;
  /** The user of Ceph, without `client.`, who can reach this folder only, and its key. */
  user: string;
  key: string;
}

/**
 * Identifies the contents of a state except the size, which no reload brings into force. A host that serves a share writes it down
 * where others can read it (records.ts).
 */
export function stampOf(state: PublishedShare): string {
  const { group, exportId, filesystem, path, user, key, rootSquash, access } = state;
  const rules = access.map(({ network, mode }) => [network, mode]);
  const text = JSON.stringify([group, exportId, filesystem, path, user, key, rootSquash, rules]);
  return hash('sha256', text, 'base64url').slice(0, 16);
}
