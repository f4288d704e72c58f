import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { apiKeyQuery } from './data.ts';
import type { ApiKey } from './data.ts';

/** Renders a dialog once the key of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentKey({ children }: { children: (key: ApiKey) => ReactNode }) {
  const { name } = useParams({ strict: false }) as { name: string };
  const { data } = useQuery(apiKeyQuery(useScope(), name));
  return data ? children(data) : null;
}
