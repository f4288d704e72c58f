import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { pullSecretQuery } from './data.ts';
import type { PullSecret } from './data.ts';

/** Renders a dialog once the pull secret of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentSecret({ children }: { children: (secret: PullSecret) => ReactNode }) {
  const { name } = useParams({ strict: false }) as { name: string };
  const { data } = useQuery(pullSecretQuery(useScope(), name));
  return data ? children(data) : null;
}
