import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { PartDialog } from '../ui/deleted-elsewhere.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentRegistry, type Registry, type RegistryUser, usersQuery } from './data.ts';

/** Renders a dialog once the registry and the user of the URL are loaded. */
export function CurrentUser({ children }: { children: (registry: Registry, user: RegistryUser) => ReactNode }) {
  const { id, user } = useParams({ strict: false }) as { id: string; user: string };
  const { data } = useQuery(usersQuery(useScope(), id));
  if (!data) return null;
  return (
    <CurrentRegistry>
      {(registry) => (
        <PartDialog part={data.results.find((each) => String(each.id) === user)} what="user">
          {(found) => children(registry, found)}
        </PartDialog>
      )}
    </CurrentRegistry>
  );
}
