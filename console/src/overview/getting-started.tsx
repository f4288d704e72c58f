import { useQuery } from '@tanstack/react-query';
import { useReadOnlyReason } from '../api/session.ts';
import { quotasOf, quotasQuery } from '../quotas/data.ts';
import { Card } from '../ui/detail-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { useVisiblePages } from '../ui/visible-pages.ts';

/** What every client has from the start. */
const INITIAL_KINDS = ['network_count', 'subnet_count', 'project_count'];

const STORIES: Readonly<Record<string, { readonly title: string; readonly text: string }>> = {
  'file-shares': { title: 'Share files', text: 'Storage that several machines mount at once, over NFS.' },
  'load-balancers': { title: 'Balance load', text: 'One address in front of several servers, with health checks.' },
  volumes: { title: 'Keep snapshots', text: 'A volume, and a lifecycle policy that makes snapshots of it.' },
  registries: { title: 'Store images', text: 'A registry for container images, with users and a size limit.' },
};

/** The first steps; shown while the region has no resource that uses a quota. */
export function GettingStarted() {
  const scope = useScope();
  const readOnly = useReadOnlyReason();
  const pages = useVisiblePages();
  const { data } = useQuery(quotasQuery);
  const figures = data?.regional_quotas.find(({ region_id }) => region_id === scope.region);
  const isUsed = quotasOf(figures).some(({ kind, usage }) => usage > 0 && !INITIAL_KINDS.includes(kind));
  if (!data || isUsed) return null;
  const steps = pages.flatMap((page) => {
    const story = STORIES[page.path];
    return story && page.create ? [{ ...story, to: scope.path(...page.create.path.split('/')) }] : [];
  });
  return (
    <Card title="Getting started">
      <ul className="card-body cards">
        {steps.map((step) => (
          <li key={step.to} className="stack">
            <div>
              <h3>{step.title}</h3>
              <p className="muted">{step.text}</p>
            </div>
            <div>
              <ActionLink to={step.to} disabledReason={readOnly}>
                {step.title}
              </ActionLink>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}
