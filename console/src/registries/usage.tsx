import { formatBytes, formatGib } from '../ui/numbers.ts';
import type { Registry } from './data.ts';

const GIB = 1024 ** 3;
/** Percent from which a push may soon be rejected. */
const NEARLY_FULL = 80;

/** Storage in use against the limit. */
export function Usage({ registry }: { registry: Registry }) {
  const percent = (registry.storage_used / (registry.storage_limit * GIB)) * 100;
  const text = `${formatBytes(registry.storage_used)} of ${formatGib(registry.storage_limit)}`;
  const tone = percent >= 100 ? 'bad' : percent >= NEARLY_FULL ? 'warn' : '';
  return (
    <div className="stack" style={{ gap: 'var(--gap-1)' }}>
      <span className="num">{text}</span>
      <div
        className={`gauge ${tone}`}
        role="meter"
        aria-label={`Storage of ${registry.name}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.min(100, Math.round(percent))}
        aria-valuetext={text}
      >
        <span style={{ width: `${Math.min(100, percent)}%` }} />
      </div>
    </div>
  );
}
