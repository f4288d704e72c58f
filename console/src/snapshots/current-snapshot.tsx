import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { snapshotQuery } from './data.ts';
import type { Snapshot } from './data.ts';

/** Renders a dialog once the snapshot of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentSnapshot({ children }: { children: (snapshot: Snapshot) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(snapshotQuery(useScope(), id));
  return data ? children(data) : null;
}
