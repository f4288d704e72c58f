import type { Values } from '../../ui/form/use-form.ts';
import type { L7Policy, L7Rule } from '../data.ts';

/** The fields of the target of each action. */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  REDIRECT_TO_POOL: ['redirect_pool_id'],
  REDIRECT_TO_URL: ['redirect_url', 'redirect_http_code'],
  REDIRECT_PREFIX: ['redirect_prefix', 'redirect_http_code'],
  REJECT: [],
};

export function targetsOf(action: unknown): readonly string[] {
  return TARGETS[String(action)] ?? [];
}

/** The values without the targets of other actions. */
export function withTarget(values: Values): Values {
  const own = targetsOf(values['action']);
  return Object.fromEntries(
    Object.entries(values).filter(([name]) => !name.startsWith('redirect_') || own.includes(name)),
  );
}

/** The action and its target, which every update of a policy names. */
export function actionOf(values: Values): Values {
  const names = ['action', ...targetsOf(values['action'])];
  return Object.fromEntries(
    names
      .map((name) => [name, values[name]])
      .filter(([, value]) => value !== undefined && value !== null && value !== ''),
  );
}

/** Its name; unnamed policies have their position. */
export function policyTitle({ name, position }: Pick<L7Policy, 'name' | 'position'>): string {
  return name === '' ? `policy ${position}` : `policy ${name}`;
}

/** What a policy does, in words. */
export function actionText(policy: L7Policy, poolName: (id: string) => string): string {
  switch (policy.action) {
    case 'REJECT':
      return 'reject with 403';
    case 'REDIRECT_TO_POOL':
      return `send to ${poolName(policy.redirect_pool_id ?? '')}`;
    case 'REDIRECT_TO_URL':
      return `redirect to ${policy.redirect_url} (${policy.redirect_http_code ?? 302})`;
    case 'REDIRECT_PREFIX':
      return `redirect to ${policy.redirect_prefix}… (${policy.redirect_http_code ?? 302})`;
  }
}

const COMPARISONS: Readonly<Record<string, string>> = {
  CONTAINS: 'contains',
  ENDS_WITH: 'ends with',
  EQUAL_TO: 'is',
  REGEX: 'matches',
  STARTS_WITH: 'starts with',
};

/** A rule in words: `header X-Beta is 1`. */
export function ruleText({ type, key, compare_type, value, invert }: L7Rule): string {
  const subject = [type.toLowerCase().replaceAll('_', ' '), key].filter(Boolean).join(' ');
  return `${invert ? 'not: ' : ''}${subject} ${COMPARISONS[compare_type] ?? compare_type} ${value}`;
}

/** The update of a policy. */
export function policyCall(scope: { project_id: number; region_id: number }, id: string) {
  return {
    operationId: 'updateL7Policy',
    method: 'PATCH',
    path: '/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}',
    params: { ...scope, l7policy_id: id },
  };
}
