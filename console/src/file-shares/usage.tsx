import { formatBytes } from '../ui/numbers.ts';
import { UsageMeter } from '../ui/usage-meter.tsx';
import type { FileShare, FileShareUsage } from './data.ts';

/** Used space of the share. The server measures it every minute, except with a simulated driver. */
export function Usage({ share, usage }: { share: FileShare; usage: FileShareUsage | undefined }) {
  if (!usage) return <span className="muted">not measured</span>;
  const { used_bytes: used, total_bytes: total } = usage;
  const text = `${formatBytes(used)} of ${formatBytes(total)}`;
  return <UsageMeter label={`Used space of ${share.name}`} used={used} total={total} text={text} />;
}
