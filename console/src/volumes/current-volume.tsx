import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useScope } from '../ui/scope.tsx';
import { volumeQuery } from './data.ts';
import type { Volume } from './data.ts';

/** Renders a dialog once the volume of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentVolume({ children }: { children: (volume: Volume) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(volumeQuery(useScope(), id));
  return data ? children(data) : null;
}
