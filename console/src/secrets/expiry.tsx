import { FullDate, parseDate } from '../ui/time.tsx';
import { useServerNow } from '../ui/use-server-now.ts';

const SOON_MS = 30 * 86_400_000;

/** Until when a secret can be used: red once it has expired, yellow in the last 30 days. */
export function Expiry({ at }: { at: string | null }) {
  const now = useServerNow();
  if (at === null) return <span className="muted">no limit</span>;
  const left = parseDate(at).getTime() - now;
  return (
    <>
      <FullDate at={at} /> {left <= 0 && <span className="badge bad">expired</span>}
      {left > 0 && left < SOON_MS && <span className="badge warn">expires soon</span>}
    </>
  );
}
