import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useNotAdminReason, useNotClientAdminReason } from '../api/session.ts';
import { createdColumn, nameColumn } from '../ui/columns.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { HOME, projectsQuery, type Scope, useScope } from '../ui/scope.tsx';
import type { Column } from '../ui/table.tsx';
import { type Project, undeletableReason } from './data.ts';

const columnsOf = (scope: Scope): Column<Project>[] => [
  nameColumn(
    (project) => scope.path('projects', project.id),
    (project) => project.is_default && 'default',
  ),
  { key: 'id', title: 'ID', kind: 'number', sortBy: (project) => project.id },
  {
    key: 'description',
    title: 'Description',
    kind: 'wrap',
    sortBy: (project) => project.description,
    render: (project) => <bdi>{project.description}</bdi>,
  },
  createdColumn,
  { key: 'actions', title: 'Actions', kind: 'actions', render: (project) => <Actions project={project} /> },
];

export function ProjectList() {
  const scope = useScope();
  return (
    <ListPage
      title="Projects"
      description="A project separates resources, and tokens can be limited to it."
      query={useQuery(projectsQuery)}
      columns={columnsOf(scope)}
      rowKey={(project) => project.id}
      textOf={(project) => `${project.name} ${project.id} ${project.description ?? ''}`}
      create={{ label: 'Create project', to: scope.path('projects', 'new'), disabledReason: useNotClientAdminReason() }}
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
