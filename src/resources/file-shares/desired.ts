/** Pure: the desired state of a share on its host, from its rows. */
import type { DesiredFileShare } from '../../drivers/file-share.ts';
import type { FileShareRow, ReconciledRule } from './store.ts';

export function desiredFileShare(share: FileShareRow, rules: ReconciledRule[]): DesiredFileShare {
  return {
    id: share.id,
    sizeGib: share.size,
    settledGib: share.observedReal ? share.observedSize : null,
    rootSquash: share.rootSquash ?? false,
    access: rules.filter((rule) => !isDenied(rule)).map((rule) => ({ network: rule.network, mode: rule.accessLevel })),
    ...(share.nfsGroup !== null && { export: { group: share.nfsGroup, exportId: share.exportId! } }),
  };
}

/** A deleted rule never grants access again, not even when its removal fails. */
export function isDenied(rule: { deletedAt: unknown }): boolean {
  return rule.deletedAt !== null;
}
