import { useQuery } from '@tanstack/react-query';
import { driversQuery } from '../api/drivers.ts';
import { useScope } from './scope.tsx';

const OK = /^(available|active|finished|online|success|enabled|ok|approved|done|verified|in-use|sent|delivered)$/i;
const BAD = /error|fail|offline|reject|declined|expired|missed/i;
const BUSY = /ing$|^(new|running|queued.*|pending.*|in progress|draft)$/i;
const WARN = /degraded|draining|paused|disabled|partial/i;

export type Tone = 'ok' | 'warn' | 'bad' | 'busy' | '';

export function toneOf(status: string): Tone {
  if (OK.test(status)) return 'ok';
  if (BAD.test(status)) return 'bad';
  if (WARN.test(status)) return 'warn';
  return BUSY.test(status) ? 'busy' : '';
}

/** A status of the API as a badge: its own word, with a colour. */
export function StatusBadge({ status }: { status: string }) {
  return <span className={`badge ${toneOf(status)}`}>{status.toLowerCase().replaceAll('_', ' ')}</span>;
}

/** The driver of this kind, if it is simulated in the region: nothing exists on a host. */
export function useSimulatedDriver(kind: string) {
  const { region } = useScope();
  const { data } = useQuery(driversQuery);
  return data?.drivers.find((each) => each.kind === kind && !each.real && each.region_ids.includes(region));
}

export function SimulatedBadge({ kind }: { kind: string }) {
  const driver = useSimulatedDriver(kind);
  if (!driver) return null;
  return (
    <span className="badge simulated" title={driver.detail}>
      simulated
    </span>
  );
}
