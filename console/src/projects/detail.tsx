import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useNotAdminReason } from '../api/session.ts';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { auditTab } from '../ui/resource-tabs.tsx';
import { HOME, projectQuery, useScope } from '../ui/scope.tsx';
import { FullDate } from '../ui/time.tsx';
import { type Project, undeletableReason } from './data.ts';

export function ProjectDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const reason = useNotAdminReason();
  const to = (action: string) => scope.path('projects', id, action);
  usePageActions([
    { title: 'Edit this project', to: to('edit') },
    { title: 'Delete this project', to: to('delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'Projects', to: scope.path('projects') }]}
      query={useQuery(projectQuery(Number(id)))}
      titleOf={(project) => project.name}
      statusOf={(project) => project.state}
      actions={(project) => (
        <>
          <Link className="button" to={`/p/${project.id}/r/${scope.region}/${HOME}`}>
            Open
          </Link>
          <ActionLink to={to('edit')} disabledReason={reason}>
            Edit
          </ActionLink>
          <ActionLink to={to('delete')} className="danger" disabledReason={reason ?? undeletableReason(project)}>
            Delete
          </ActionLink>
        </>
      )}
      tabs={(project) => [
        { key: 'overview', title: 'Overview', render: () => <Overview project={project} /> },
        auditTab({ table: 'projects', id: project.id }),
      ]}
    />
  );
}

function Overview({ project }: { project: Project }) {
  const scope = useScope();
  const changes = (
    <Link to={scope.path('audit')} search={{ project_id: String(project.id) } as never}>
      Changes in this project
    </Link>
  );
  return (
    <Card title="Properties" actions={changes}>
      <Properties
        items={{
          Description: project.description && <bdi>{project.description}</bdi>,
          Default: project.is_default ? 'yes' : 'no',
          Client: project.client_id,
          Created: <FullDate at={project.created_at} />,
          ID: project.id,
        }}
      />
    </Card>
  );
}
