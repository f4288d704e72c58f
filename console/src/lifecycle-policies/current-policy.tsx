import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { policyQuery } from './data.ts';
import type { Policy } from './data.ts';

/** Renders a dialog once the policy of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentPolicy({ children }: { children: (policy: Policy) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(policyQuery(useScope(), id));
  return data ? children(data) : null;
}
