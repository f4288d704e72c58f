import { useQuery } from '@tanstack/react-query';
import { Outlet } from '@tanstack/react-router';
import { useLimitedReason, useSession } from '../api/session.ts';
import { Card } from '../ui/detail-page.tsx';
import { ActionLink, PageHead } from '../ui/page-head.tsx';
import { regionsQuery, useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { FullDate } from '../ui/time.tsx';
import { percentOf, quotasOf, quotasQuery, thresholdQuery } from './data.ts';
import { QuotaGauges } from './gauges.tsx';
import { QuotaRequests } from './requests.tsx';

export function Quotas() {
  const scope = useScope();
  const reason = useLimitedReason();
  const { client_id } = useSession();
  const threshold = useQuery(thresholdQuery(client_id)).data;
  return (
    <>
      <PageHead
        title="Quotas"
        actions={
          <>
            <ActionLink to={scope.path('quotas', 'threshold', 'reset')} disabledReason={reason}>
              Reset threshold
            </ActionLink>
            <ActionLink to={scope.path('quotas', 'threshold')} disabledReason={reason}>
              Edit threshold
            </ActionLink>
            <ActionLink
              to={scope.path('quotas', 'requests', 'new')}
              className="primary"
              disabledReason={reason}
              shortcut="create"
            >
              Request higher limits
            </ActionLink>
          </>
        }
      >
        <p>
          {threshold && `When a quota reaches ${threshold.threshold} %, a notification is sent.`}{' '}
          {threshold?.last_sending && (
            <>
              The last one was sent <FullDate at={threshold.last_sending} />.
            </>
          )}
        </p>
      </PageHead>
      <div className="stack">
        <Gauges threshold={threshold?.threshold ?? null} />
        <QuotaRequests />
      </div>
      <Outlet />
    </>
  );
}

function Gauges({ threshold }: { threshold: number | null }) {
  const { region } = useScope();
  const query = useQuery(quotasQuery);
  const name = useQuery(regionsQuery).data?.results.find(({ id }) => id === region)?.display_name ?? String(region);
  if (!query.data) return <NotLoaded query={query} rows={6} />;
  const regional = quotasOf(query.data.regional_quotas.find(({ region_id }) => region_id === region));
  const global = quotasOf(query.data.global_quotas);
  return (
    <>
      <Card title={`Region ${name}`}>
        <div className="card-body">
          <QuotaGauges quotas={regional.toSorted((a, b) => percentOf(b) - percentOf(a))} threshold={threshold} />
        </div>
      </Card>
      <Card title="All regions">
        <div className="card-body">
          <QuotaGauges quotas={global} threshold={threshold} />
        </div>
      </Card>
    </>
  );
}
