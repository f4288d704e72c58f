import { useQuery } from '@tanstack/react-query';
import { Outlet } from '@tanstack/react-router';
import { useLimitedReason, useSession } from '../api/session.ts';
import { ActionLink, PageHead } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { FullDate } from '../ui/time.tsx';
import { QuotaCards } from './cards.tsx';
import { quotasQuery, thresholdQuery } from './data.ts';
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
  if (!query.data) return <NotLoaded query={query} rows={6} />;
  const { regional_quotas, global_quotas } = query.data;
  const regional = regional_quotas.find(({ region_id }) => region_id === region);
  return <QuotaCards regional={regional} global={global_quotas} threshold={threshold} />;
}
