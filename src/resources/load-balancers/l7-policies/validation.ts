/** Pure: the rules of L7 policies (`drivers/l7-rules.ts`) applied to requests. */
import { l7LimitViolation, l7Limits, l7PolicyViolations, l7RuleViolations } from '../../../drivers/l7-rules.ts';
import type { L7CompareType, ListenerProtocol } from '../../../drivers/load-balancer.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import { desiredL7Policy, desiredL7Rule } from '../desired.ts';
import type { L7PolicySettings } from './normalize.ts';
import type { L7RuleSettings } from './rules/normalize.ts';

/** Without those of the redirect pool. */
export function l7PolicyErrors(settings: L7PolicySettings, listener: ListenerProtocol): FieldError[] {
  return l7PolicyViolations(desiredL7Policy(settings), listener, null);
}

export function l7RuleErrors(settings: L7RuleSettings, listener: ListenerProtocol): FieldError[] {
  return l7RuleViolations(desiredL7Rule(settings), listener);
}

/** Those of `value`, which no listener makes valid. */
export function l7ValueErrors(settings: L7RuleSettings): FieldError[] {
  return l7RuleErrors(settings, 'TERMINATED_HTTPS').filter(({ path }) => path === 'value');
}

/** The limit that one more policy exceeds. */
export function policyLimit(existing: number): string | null {
  return l7LimitViolation([], existing + 1);
}

interface Comparison {
  id: string;
  policyId: string;
  compareType: L7CompareType;
}

/** The limit that a rule of `policyId` exceeds next to the `others` of the listener. */
export function ruleLimit(settings: L7RuleSettings, policyId: string, others: Comparison[]): string | null {
  if (others.filter((other) => other.policyId === policyId).length >= l7Limits.rulesOfPolicy) {
    return `a policy can have at most ${l7Limits.rulesOfPolicy} rules`;
  }
  return l7LimitViolation([...others, settings], 0);
}
