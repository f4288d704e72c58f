/** Pure: request bodies as column values. */
import { normalizeId } from '../patch.ts';
import type { L7PolicyRow, PartColumn } from '../table.ts';
import type { UpdateL7Policy } from './schema.ts';

/** The columns that a client decides, without the position. */
export type L7PolicySettings = Omit<L7PolicyRow, PartColumn | 'listenerId' | 'position'>;

const defaultCode = 302;

/**
 * The settings after a create (`current` is null) or an update. Targets of other actions are removed; the status of a
 * redirect stays as it is while the policy redirects.
 */
export function l7PolicySettings(body: UpdateL7Policy, current: L7PolicySettings | null): L7PolicySettings {
  const redirects = body.action === 'REDIRECT_TO_URL' || body.action === 'REDIRECT_PREFIX';
  const code = body.redirect_http_code ?? (redirects ? (current?.redirectHttpCode ?? defaultCode) : null);
  return {
    name: body.name ?? current?.name ?? '',
    action: body.action,
    redirectUrl: body.redirect_url ?? null,
    redirectPrefix: body.redirect_prefix ?? null,
    redirectPoolId: normalizeId(body.redirect_pool_id),
    redirectHttpCode: code,
    tags: body.tags ?? current?.tags ?? [],
  };
}
