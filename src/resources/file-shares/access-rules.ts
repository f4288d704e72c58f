/** Access rules of file shares: who may mount, and in which order they are shown. */
import { randomUUID } from 'node:crypto';
import type { FieldError } from '../../errors/catalogue.ts';
import { canonicalNetwork } from '../../platform/network-address.ts';
import type { AccessRule, CreateAccessRule } from './schema.ts';
import type { AccessRuleRow } from './store.ts';

export const maxAccessRules = 100;

/** NFS-Ganesha's configuration has no three-digit prefixes; from /120 on the driver lists the addresses instead. */
export function unservable(network: string, path: string): FieldError[] {
  const prefix = Number(network.split('/')[1]);
  if (prefix < 100 || prefix > 119) return [];
  return [{ path, message: 'an IPv6 network of /100 to /119 cannot be given access; use /99, or /120 and longer' }];
}

/** Rules are listed in the order of their making, so no two of a share are of the same millisecond. */
export function after(rules: AccessRuleRow[], now: Date): Date {
  return new Date(Math.max(now.getTime(), ...rules.map((rule) => rule.createdAt.getTime() + 1)));
}

export function newAccessRule(fileShareId: string, rule: CreateAccessRule, now: Date): AccessRuleRow {
  return {
    id: randomUUID(),
    fileShareId,
    accessLevel: rule.access_mode,
    network: canonicalNetwork(rule.ip_address)!,
    accessTo: rule.ip_address,
    state: 'queued_to_apply',
    createdAt: now,
    deletedAt: null,
  };
}

export function presentAccessRule(rule: AccessRuleRow): AccessRule {
  return { id: rule.id, access_level: rule.accessLevel, access_to: rule.accessTo, state: rule.state };
}
