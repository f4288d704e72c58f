import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { DialogRoute } from '../ui/dialog.tsx';
import { ErrorState } from '../ui/states.tsx';
import { projectQuery } from './data.ts';
import type { Project } from './data.ts';

/** The project of the URL, for its dialogs. A dialog stays open when the project is deleted elsewhere. */
export function CurrentProject({ children }: { children: (project: Project) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data, error } = useQuery(projectQuery(id));
  if (error && !data) {
    return (
      <DialogRoute title="Project">
        <ErrorState error={error} />
      </DialogRoute>
    );
  }
  return data ? children(data) : null;
}
