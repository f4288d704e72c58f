/**
 * Pure: weights of members that a consistent hash selects. The hash has 16 points for each unit of weight in HAProxy, and 160 in
 * nginx, and every change of any tenant needs a check of the configuration. With a thousand members of weight 256, the check took
 * 34 s in HAProxy, and 56 s and 1.2 GiB in nginx (measured). With scaled weights it takes about as long as with weight 4.
 */
import type { DesiredMember } from '../load-balancer.ts';

/** Units of weight of a small pool, and for each member of a large one. */
const UNITS = 1_024;
const UNITS_PER_MEMBER = 4;

/** The members with weights in about the same proportion. Those of a pool within the units are unchanged. */
export function withHashWeights(members: DesiredMember[]): DesiredMember[] {
  const total = members.reduce((sum, { weight }) => sum + weight, 0);
  const factor = Math.max(UNITS, UNITS_PER_MEMBER * members.length) / total;
  if (factor >= 1) return members;
  const scaled = (weight: number) => (weight === 0 ? 0 : Math.max(Math.round(weight * factor), 1));
  return members.map((member) => ({ ...member, weight: scaled(member.weight) }));
}
