/** Pure: what a host should have, given the rows. */
import type { DesiredFileShare } from '../../drivers/file-share.ts';
import type { AccessRuleRow, FileShareRow } from './store.ts';

export function desiredFileShare(share: FileShareRow, rules: AccessRuleRow[]): DesiredFileShare {
  return {
    id: share.id,
    sizeGib: share.size,
    settledGib: share.observedReal ? share.observedSize : null,
    rootSquash: share.rootSquash,
    access: rules.filter((rule) => !isLeaving(rule)).map((rule) => ({ network: rule.network, mode: rule.accessLevel })),
  };
}

export function isLeaving(rule: AccessRuleRow): boolean {
  return rule.deletedAt !== null;
}
