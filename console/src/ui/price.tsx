import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { request } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { messageOf } from '../api/errors.ts';

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

/** The price of what the form describes. `body` is null while it is not valid. */
export function PricePreview({ path, body }: { path: string; body: Readonly<Record<string, unknown>> | null }) {
  const settled = useSettled(body);
  const { data, error } = useQuery({
    queryKey: ['prices', path, settled],
    queryFn: () => request<Price>('POST', path, settled),
    enabled: settled !== null,
    placeholderData: keepPreviousData,
    retry: false,
  });
  return (
    <div className="price" role="status">
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
  const money = (amount: number, digits: number) =>
    new Intl.NumberFormat(undefined, {
      style: 'currency',
      currency: price.currency_code ?? 'EUR',
      maximumFractionDigits: digits,
    }).format(amount);
  return (
    <span>
      <strong>{money(price.price_per_month, 2)}</strong> a month{' '}
      <span className="muted">({money(price.price_per_hour, 6)} an hour)</span>
    </span>
  );
}
