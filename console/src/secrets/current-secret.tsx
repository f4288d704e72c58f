import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { secretQuery } from './data.ts';
import type { Secret } from './data.ts';

/** Renders a dialog once the secret of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentSecret({ children }: { children: (secret: Secret) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(secretQuery(useScope(), id));
  return data ? children(data) : null;
}
