import { useQuery } from '@tanstack/react-query';
import { useNotAdminReason } from '../api/session.ts';
import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { projectsQuery, useScope } from '../ui/scope.tsx';
import { CurrentProject } from './current-project.tsx';
import { KIND } from './data.ts';

export function DeleteProject() {
  const scope = useScope();
  const others = useQuery(projectsQuery).data?.results ?? [];
  const reason = useNotAdminReason();
  return (
    <CurrentProject>
      {(project) => (
        <DeleteDialog
          kind="project"
          name={project.name}
          queryKind={KIND}
          listPath={listAfter(project.id)}
          disabledReason={reason}
          call={{
            operationId: 'deleteProject',
            path: '/cloud/v1/projects/{project_id}',
            params: { project_id: project.id },
          }}
        >
          The project must be empty: the server names the resources that are left. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentProject>
  );

  /** The pages of a deleted project do not open, so its list is that of another project. */
  function listAfter(deleted: number): string {
    if (deleted !== scope.project) return scope.path('projects');
    const next = others.find((project) => project.is_default) ?? others.find(({ id }) => id !== deleted);
    return next ? `/p/${next.id}/r/${scope.region}/projects` : '/';
  }
}
