import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { PartDialog } from '../ui/deleted-elsewhere.tsx';
import { useScope } from '../ui/scope.tsx';
import { registryQuery, usersQuery } from './data.ts';
import type { Registry, RegistryUser } from './data.ts';

/** Renders a dialog once the registry of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentRegistry({ children }: { children: (registry: Registry) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(registryQuery(useScope(), id));
  return data ? children(data) : null;
}

/** The same for a user of the registry. */
export function CurrentUser({ children }: { children: (registry: Registry, user: RegistryUser) => ReactNode }) {
  const { id, user } = useParams({ strict: false }) as { id: string; user: string };
  const { data } = useQuery(usersQuery(useScope(), id));
  if (!data) return null;
  return (
    <CurrentRegistry>
      {(registry) => (
        <PartDialog part={data.results.find((each) => String(each.id) === user)} what="user" segments={3}>
          {(found) => children(registry, found)}
        </PartDialog>
      )}
    </CurrentRegistry>
  );
}
