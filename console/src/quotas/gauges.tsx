import './quotas.css';
import globalLimits from 'schema:GlobalLimits';
import regionalLimits from 'schema:RegionalLimits';
import { formatNumber } from '../ui/numbers.ts';
import { percentOf, type Quota } from './data.ts';

/** The name of a kind in the descriptions of the API: `Limit: file shares` is `File shares`. */
export function quotaTitle(kind: string): string {
  const name = `${kind}_limit`;
  const description = (regionalLimits.properties?.[name] ?? globalLimits.properties?.[name])?.description;
  const text = description?.replace(/^Limit: /, '') ?? kind.replaceAll('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A bar for each quota. `threshold`: percent from which it is marked; null without one. */
export function QuotaGauges({ quotas, threshold }: { quotas: readonly Quota[]; threshold: number | null }) {
  return (
    <ul className="quota-gauges">
      {quotas.map((quota) => (
        <QuotaGauge key={quota.kind} quota={quota} threshold={threshold} />
      ))}
    </ul>
  );
}

function QuotaGauge({ quota, threshold }: { quota: Quota; threshold: number | null }) {
  const percent = percentOf(quota);
  const isReached = threshold !== null && percent >= threshold;
  const tone = percent >= 100 ? 'bad' : isReached ? 'warn' : '';
  const title = quotaTitle(quota.kind);
  return (
    <li>
      <div className="row spread">
        <span>{title}</span>
        <span className="num muted">
          {formatNumber(quota.usage)} of {formatNumber(quota.limit)}
        </span>
      </div>
      <div
        className={`gauge ${tone}`}
        role="meter"
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={quota.limit}
        aria-valuenow={Math.min(quota.usage, quota.limit)}
        aria-valuetext={`${formatNumber(quota.usage)} of ${formatNumber(quota.limit)}${isReached ? ', threshold reached' : ''}`}
      >
        <span style={{ width: `${percent}%` }} />
        {threshold !== null && <i style={{ left: `${threshold}%` }} />}
      </div>
    </li>
  );
}
