import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { DialogRoute } from '../ui/dialog.tsx';
import { projectQuery } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import type { Project } from './data.ts';

/** The project of the URL, for its dialogs. A dialog stays open when the project is deleted elsewhere. */
export function CurrentProject({ children }: { children: (project: Project) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const query = useQuery(projectQuery(Number(id)));
  if (query.data) return children(query.data);
  return (
    <DialogRoute title="Project">
      <NotLoaded query={query} />
    </DialogRoute>
  );
}
