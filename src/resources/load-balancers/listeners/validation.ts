/** Pure: the rules of listeners (`drivers/load-balancer-rules.ts`) applied to requests. */
import { listenerViolations, portViolations, prefixed, sharePort } from '../../../drivers/load-balancer-rules.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import { desiredListener, withoutPem } from '../desired.ts';
import type { SecretReference } from '../references.ts';
import type { ListenerSettings } from './normalize.ts';

/** `path` precedes the fields of the listener. */
export function listenerErrors(listener: ListenerSettings, path: string): FieldError[] {
  return prefixed(path, listenerViolations(desiredListener(listener, withoutPem)));
}

export function portErrors(listeners: ListenerSettings[]): FieldError[] {
  return portViolations(listeners.map((listener) => desiredListener(listener, withoutPem)));
}

export function havePortInCommon(a: ListenerSettings, b: ListenerSettings): boolean {
  return sharePort(desiredListener(a, withoutPem), desiredListener(b, withoutPem));
}

/** The secrets that a listener uses and did not use `before`. */
export function listenerSecrets(
  listener: ListenerSettings,
  before: ListenerSettings | null,
  path: string,
): SecretReference[] {
  const used = new Set([before?.secretId, ...(before?.sniSecretIds ?? [])]);
  const named = [
    { id: listener.secretId, path: `${path}secret_id` },
    ...listener.sniSecretIds.map((id, i) => ({ id, path: `${path}sni_secret_id.${i}` })),
  ];
  return named.flatMap(({ id, path }) => (id === null || used.has(id) ? [] : [{ id, kind: 'certificate', path }]));
}
