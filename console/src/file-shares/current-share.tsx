import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { fileShareQuery } from './data.ts';
import type { FileShare } from './data.ts';

/** Renders a dialog once the share of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentShare({ children }: { children: (share: FileShare) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(fileShareQuery(useScope(), id));
  return data ? children(data) : null;
}
