import { useQuery } from '@tanstack/react-query';
import { FilterInput } from '../ui/filter-input.tsx';
import { useListState } from '../ui/list-state.ts';
import { formatNumber } from '../ui/numbers.ts';
import { PageHead } from '../ui/page-head.tsx';
import { formatMoney, useSettled } from '../ui/price.tsx';
import { useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { type PriceRow, pricesQuery } from './data.ts';
import './prices.css';

const DEFAULT_GIB = 100;
const MAX_GIB = 102_400;

/** Every price of the region's price book, for a size of storage that the user chooses. */
export function Prices() {
  const scope = useScope();
  const state = useListState();
  const size = sizeOf(useSettled(state.get('size')));
  const query = useQuery({ ...pricesQuery(scope, size ?? DEFAULT_GIB), enabled: size !== null });
  const rows = query.data ?? [];
  return (
    <>
      <PageHead title="Prices">
        <p>{termsOf(rows)}</p>
      </PageHead>
      <section className="card" aria-label="Prices">
        <div className="list-tools prices-size">
          <label htmlFor="size">Size of storage (GiB)</label>
          <FilterInput
            state={state}
            name="size"
            id="size"
            type="number"
            min={1}
            max={MAX_GIB}
            placeholder={String(DEFAULT_GIB)}
            aria-invalid={size === null}
            aria-describedby="size-error"
          />
          <span id="size-error" role="alert" className="error">
            {size === null && `must be a whole number from 1 to ${formatNumber(MAX_GIB)}`}
          </span>
        </div>
        {!query.data && size !== null && <NotLoaded query={query} rows={6} />}
        {query.data?.length === 0 && <EmptyState title="The region offers nothing that has a price" />}
        {rows.length > 0 && (
          <Table
            label="Prices"
            columns={COLUMNS}
            rows={rows}
            rowKey={(row) => row.name}
            isBusy={query.isPlaceholderData && size !== null}
          />
        )}
      </section>
    </>
  );
}

function sizeOf(text: string): number | null {
  const size = text === '' ? DEFAULT_GIB : Number(text);
  return Number.isInteger(size) && size >= 1 && size <= MAX_GIB ? size : null;
}

function termsOf(rows: readonly PriceRow[]): string {
  const shown = rows.find(({ price }) => price.price_status === 'show')?.price;
  if (!shown) return 'What resources cost in this region.';
  const discount = shown.discount_percent ? ` and a discount of ${formatNumber(shown.discount_percent)} %` : '';
  return `Prices include tax of ${formatNumber(shown.tax_percent)} %${discount}. A month has 730 hours.`;
}

const COLUMNS: Column<PriceRow>[] = [
  { key: 'name', title: 'Resource', kind: 'name', render: ({ name }) => name },
  { key: 'amount', title: 'Size', render: ({ amount }) => amount },
  {
    key: 'hour',
    title: 'Per hour',
    kind: 'number',
    render: ({ price }) => formatMoney(price, price.price_per_hour, 6),
  },
  { key: 'month', title: 'Per month', kind: 'number', render: ({ price }) => monthOf(price) },
];

function monthOf(price: PriceRow['price']) {
  if (price.price_status === 'hide') return <span className="muted">no price is set</span>;
  if (price.price_status === 'error') return <span className="muted">the price book of the region is faulty</span>;
  return <strong>{formatMoney(price, price.price_per_month, 2)}</strong>;
}
