/** Pure: request bodies as column values. */
import { patched } from '../../patch.ts';
import type { L7RuleRow } from '../../table.ts';
import type { CreateL7Rule, UpdateL7Rule } from './schema.ts';

/** The columns that a client decides. */
export type L7RuleSettings = Pick<L7RuleRow, 'type' | 'compareType' | 'key' | 'value' | 'invert' | 'tags'>;

export function newL7RuleSettings(body: CreateL7Rule): L7RuleSettings {
  return {
    type: body.type,
    compareType: body.compare_type,
    key: body.key || null,
    value: body.value,
    invert: body.invert ?? false,
    tags: body.tags ?? [],
  };
}

/** Absent fields keep their value. */
export function patchedL7RuleSettings(rule: L7RuleSettings, body: UpdateL7Rule): L7RuleSettings {
  return {
    type: body.type ?? rule.type,
    compareType: body.compare_type ?? rule.compareType,
    key: patched(body.key, rule.key, (key) => key || null),
    value: body.value ?? rule.value,
    invert: body.invert ?? rule.invert,
    tags: body.tags ?? rule.tags,
  };
}
