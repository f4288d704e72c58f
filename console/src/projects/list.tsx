import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useNotAdminReason, useNotClientAdminReason } from '../api/session.ts';
import { ListPage } from '../ui/list-page.tsx';
import { Icon } from '../ui/icons.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { HOME, projectsQuery, useScope } from '../ui/scope.tsx';
import type { Scope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { Ago, parseDate } from '../ui/time.tsx';
import { undeletableReason } from './data.ts';
import type { Project } from './data.ts';

const columnsOf = (scope: Scope): Column<Project>[] => [
  {
    key: 'name',
    title: 'Name',
    kind: 'name',
    sortBy: (project) => project.name,
    render: (project) => (
      <>
        <Link to={scope.path('projects', project.id)}>
          <bdi>{project.name}</bdi>
        </Link>{' '}
        {project.is_default && <span className="badge">default</span>}
      </>
    ),
  },
  {
    key: 'id',
    title: 'ID',
    kind: 'number',
    sortBy: (project) => project.id,
    render: (project) => project.id,
  },
  {
    key: 'description',
    title: 'Description',
    kind: 'wrap',
    sortBy: (project) => project.description,
    render: (project) => <bdi>{project.description}</bdi>,
  },
  {
    key: 'created',
    title: 'Created',
    sortBy: (project) => parseDate(project.created_at).getTime(),
    render: (project) => <Ago at={project.created_at} />,
  },
  { key: 'actions', title: 'Actions', kind: 'actions', render: (project) => <Actions project={project} /> },
];

export function ProjectList() {
  const scope = useScope();
  const reason = useNotClientAdminReason();
  return (
    <ListPage
      title="Projects"
      description="A project separates resources, and tokens can be limited to it."
      query={useQuery(projectsQuery)}
      columns={columnsOf(scope)}
      rowKey={(project) => project.id}
      textOf={(project) => `${project.name} ${project.id} ${project.description ?? ''}`}
      actions={
        <ActionLink to={scope.path('projects', 'new')} className="primary" disabledReason={reason} shortcut="create">
          <Icon name="plus" /> Create project
        </ActionLink>
      }
      empty={{ title: 'No projects', text: 'This token sees no project.' }}
    />
  );
}

function Actions({ project }: { project: Project }) {
  const scope = useScope();
  const reason = useNotAdminReason();
  const name = <span className="visually-hidden">{project.name}</span>;
  return (
    <div className="row">
      <Link className="button small quiet" to={`/p/${project.id}/r/${scope.region}/${HOME}`}>
        Open {name}
      </Link>
      <ActionLink to={scope.path('projects', project.id, 'edit')} className="small quiet" disabledReason={reason}>
        Edit {name}
      </ActionLink>
      <ActionLink
        to={scope.path('projects', project.id, 'delete')}
        className="small quiet danger"
        disabledReason={reason ?? undeletableReason(project)}
      >
        Delete {name}
      </ActionLink>
    </div>
  );
}
