import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { subnetQuery } from '../networks/data.ts';
import type { Subnet } from '../networks/data.ts';
import { useScope } from '../ui/scope.tsx';

/** Renders a dialog once the subnet of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentSubnet({ children }: { children: (subnet: Subnet) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const { data } = useQuery(subnetQuery(useScope(), id));
  return data ? children(data) : null;
}
