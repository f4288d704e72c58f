import { formatBytes, formatGib } from '../ui/numbers.ts';
import { UsageMeter } from '../ui/usage-meter.tsx';
import type { Registry } from './data.ts';

const GIB = 1024 ** 3;

/** Storage in use against the limit. */
export function Usage({ registry: { name, storage_limit: limit, storage_used: used } }: { registry: Registry }) {
  const text = `${formatBytes(used)} of ${formatGib(limit)}`;
  return <UsageMeter label={`Storage of ${name}`} used={used} total={limit * GIB} text={text} />;
}
