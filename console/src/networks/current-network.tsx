import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { networkQuery } from './data.ts';
import type { Network } from './data.ts';
import { useScope } from '../ui/scope.tsx';

/** Renders a dialog once the network of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentNetwork({ children }: { children: (network: Network) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(networkQuery(useScope(), id));
  return data ? children(data) : null;
}
