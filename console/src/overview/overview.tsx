import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { driversQuery } from '../api/drivers.ts';
import { useSession } from '../api/session.ts';
import { percentOf, quotasOf, quotasQuery, thresholdQuery } from '../quotas/data.ts';
import { QuotaGauges } from '../quotas/gauges.tsx';
import { Card } from '../ui/detail-page.tsx';
import { PageHead } from '../ui/page-head.tsx';
import { useProject, useScope } from '../ui/scope.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { Alerts } from './alerts.tsx';
import { GettingStarted } from './getting-started.tsx';
import { RecentTasks } from './recent-tasks.tsx';

/** What an operator or tenant looks at first: limits, work, alerts and drivers. */
export function Overview() {
  const scope = useScope();
  const name = useProject().project?.name;
  return (
    <>
      <PageHead title="Overview">
        <p>
          Project <bdi>{name ?? scope.project}</bdi>
        </p>
      </PageHead>
      <div className="stack">
        <GettingStarted />
        <div className="cards">
          <div className="stack">
            <RecentTasks title="Failed tasks" states={['ERROR']} empty="No failed task needs attention." />
            <RecentTasks title="Running tasks" states={['NEW', 'RUNNING']} empty="No task is running." />
            <Alerts />
          </div>
          <div className="stack">
            <Quotas />
            <Drivers />
          </div>
        </div>
      </div>
    </>
  );
}

const SHOWN_QUOTAS = 6;

/** The quotas of the region that are used most. */
function Quotas() {
  const scope = useScope();
  const { client_id } = useSession();
  const query = useQuery(quotasQuery);
  const threshold = useQuery(thresholdQuery(client_id)).data?.threshold ?? null;
  const regional = query.data?.regional_quotas.find(({ region_id }) => region_id === scope.region);
  const shown = quotasOf(regional)
    .toSorted((a, b) => percentOf(b) - percentOf(a))
    .slice(0, SHOWN_QUOTAS);
  return (
    <Card title="Quotas" actions={<Link to={scope.path('quotas')}>All quotas</Link>}>
      {!query.data && <NotLoaded query={query} />}
      {query.data && (
        <div className="card-body">
          <QuotaGauges quotas={shown} threshold={threshold} />
        </div>
      )}
    </Card>
  );
}

/** The drivers of the region, those that need attention first. */
function Drivers() {
  const { region } = useScope();
  const query = useQuery(driversQuery);
  if (!query.data) {
    return (
      <Card title="Drivers">
        <NotLoaded query={query} />
      </Card>
    );
  }
  const ofRegion = query.data.drivers.filter(({ region_ids: ids }) => ids.length === 0 || ids.includes(region));
  return (
    <Card title="Drivers">
      {ofRegion.length === 0 && (
        <EmptyState title="No worker">No worker of this region is alive: nothing changes on a host.</EmptyState>
      )}
      <ul className="card-body stack">
        {ofRegion
          .toSorted((a, b) => Number(a.healthy) - Number(b.healthy))
          .map((driver) => (
            <li key={`${driver.worker} ${driver.kind} ${driver.driver}`}>
              <div className="row">
                <strong>{driver.kind ?? driver.driver}</strong>
                <span className={`badge ${driver.healthy ? 'ok' : 'bad'}`}>
                  {driver.healthy ? 'healthy' : 'unhealthy'}
                </span>
                {!driver.real && <span className="badge simulated">simulated</span>}
              </div>
              <p className="small muted">{driver.detail.replace(/^simulated: /, '')}</p>
            </li>
          ))}
      </ul>
    </Card>
  );
}
