import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { request } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { messageOf } from '../api/errors.ts';
import { type Scope, useScope } from './scope.tsx';

type Price = components['schemas']['Price'];

const PAUSE_MS = 250;

/** The value once it has not changed for a moment: for requests while the user types. */
export function useSettled<T>(value: T): T {
  const key = JSON.stringify(value);
  const [settled, setSettled] = useState(key);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(key), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return JSON.parse(settled) as T;
}

type Priced = 'file_shares' | 'loadbalancers' | 'snapshots' | 'volumes';

/** The price of a resource in the region. */
export function priceOf({ project, region }: Scope, kind: Priced, body: object): Promise<Price> {
  return request('POST', `/cloud/v1/pricing/${project}/${region}/${kind}`, body);
}

/** The price of what the form describes. `body` is null while it is not valid. */
export function PricePreview({ kind, body }: { kind: Priced; body: Readonly<Record<string, unknown>> | null }) {
  const scope = useScope();
  const settled = useSettled(body);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ['prices', kind, scope.project, scope.region, settled],
    queryFn: () => priceOf(scope, kind, settled!),
    enabled: settled !== null,
    placeholderData: keepPreviousData,
    retry: false,
  });
  return (
    <div className="price" role="status" aria-busy={isPlaceholderData && settled !== null}>
      <span>Price</span>
      {error ? (
        <span className="muted">{messageOf(error)}</span>
      ) : (
        <PriceText price={settled === null ? undefined : data} />
      )}
    </div>
  );
}

export function PriceText({ price }: { price: Price | undefined }) {
  if (!price) return <span className="muted">–</span>;
  if (price.price_status === 'hide') return <span className="muted">No price is set for this</span>;
  if (price.price_status === 'error' || price.price_per_month === null || price.price_per_hour === null) {
    return <span className="muted">The price book of the region is faulty</span>;
  }
  return (
    <span>
      <strong>{formatMoney(price, price.price_per_month, 2)}</strong> a month{' '}
      <span className="muted">({formatMoney(price, price.price_per_hour, 6)} an hour)</span>
    </span>
  );
}

/** An amount in the currency of the price, with at most `digits` decimals; a dash where there is none. */
export function formatMoney({ currency_code }: Price, amount: number | null, digits: number): string {
  if (amount === null) return '–';
  const style = { style: 'currency', currency: currency_code ?? 'EUR', maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(undefined, style).format(amount);
}
