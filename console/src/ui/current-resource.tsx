import { type QueryKey, type UseQueryOptions, useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { type Scope, useScope } from './scope.tsx';

/** A component that renders a dialog once the resource of the URL is loaded; the page below shows the loading and the failure. */
export function currentResource<T, K extends QueryKey>(
  query: (scope: Scope, id: string) => UseQueryOptions<T, Error, T, K>,
  param: 'id' | 'name' = 'id',
) {
  return function Current({ children }: { children: (resource: T) => ReactNode }) {
    const params = useParams({ strict: false }) as Record<typeof param, string>;
    const { data } = useQuery(query(useScope(), params[param]));
    return data ? children(data) : null;
  };
}
