import { useReadOnlyReason } from '../api/session.ts';
import type { LoadBalancer } from './data.ts';

/** Why the load balancer cannot be changed now; null when it can. */
export function useLockReason(balancer: LoadBalancer): string | null {
  const readOnly = useReadOnlyReason();
  return readOnly ?? (balancer.task_id ? 'A task is changing this load balancer' : null);
}
