import { useQuery } from '@tanstack/react-query';
import { Card } from '../ui/detail-page.tsx';
import { regionsQuery, useScope } from '../ui/scope.tsx';
import { type Figures, percentOf, quotasOf } from './data.ts';
import { QuotaGauges } from './gauges.tsx';

interface QuotaCardsProps {
  readonly regional: Figures | undefined;
  readonly global: Figures;
  readonly threshold: number | null;
}

/** The quotas in the region of the URL, the most used first, and those that hold in all regions. */
export function QuotaCards({ regional, global, threshold }: QuotaCardsProps) {
  const { region } = useScope();
  const name = useQuery(regionsQuery).data?.results.find(({ id }) => id === region)?.display_name ?? String(region);
  const byUse = quotasOf(regional).toSorted((a, b) => percentOf(b) - percentOf(a));
  return (
    <>
      <Card title={`Region ${name}`}>
        <div className="card-body">
          <QuotaGauges quotas={byUse} threshold={threshold} />
        </div>
      </Card>
      <Card title="All regions">
        <div className="card-body">
          <QuotaGauges quotas={quotasOf(global)} threshold={threshold} />
        </div>
      </Card>
    </>
  );
}
