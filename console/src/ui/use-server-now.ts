import { useEffect, useState } from 'react';
import { useServerOffset } from '../api/server-clock.ts';

const REFRESH_MS = 30_000;

/** The time of the server, for pages that stay open over midnight or over the end of something. */
export function useServerNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return now + useServerOffset();
}
