/** Pure: request bodies as column values. */
import { takesKey } from '../../../../drivers/l7-rules.ts';
import { patched } from '../../patch.ts';
import type { L7RuleRow, PartColumn } from '../../table.ts';
import type { CreateL7Rule, UpdateL7Rule } from './schema.ts';

/** The columns that a client decides. */
export type L7RuleSettings = Omit<L7RuleRow, PartColumn | 'policyId'>;

export function newL7RuleSettings(body: CreateL7Rule): L7RuleSettings {
  const { type, compare_type: compareType, value } = body;
  return patchedL7RuleSettings({ type, compareType, value, key: null, invert: false, tags: [] }, body);
}

/** Absent fields keep their value. The key goes with a type that has keys: official clients cannot send null. */
export function patchedL7RuleSettings(rule: L7RuleSettings, body: UpdateL7Rule): L7RuleSettings {
  const type = body.type ?? rule.type;
  return {
    type,
    compareType: body.compare_type ?? rule.compareType,
    key: patched(body.key, takesKey(type) ? rule.key : null, (key) => key || null),
    value: body.value ?? rule.value,
    invert: body.invert ?? rule.invert,
    tags: body.tags ?? rule.tags,
  };
}
