/** Percent from which space is nearly used up. */
const NEARLY_FULL = 80;

interface UsageMeterProps {
  readonly label: string;
  /** In the same unit. */
  readonly used: number;
  readonly total: number;
  /** Such as `1.5 GiB of 2 GiB`. */
  readonly text: string;
}

/** Used space of a total, as text and as a gauge. */
export function UsageMeter({ label, used, total, text }: UsageMeterProps) {
  const percent = (used / total) * 100;
  const tone = percent >= 100 ? 'bad' : percent >= NEARLY_FULL ? 'warn' : '';
  return (
    <div className="stack" style={{ gap: 'var(--gap-1)' }}>
      <span className="num">{text}</span>
      <div
        className={`gauge ${tone}`}
        role="meter"
        aria-label={label}
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
