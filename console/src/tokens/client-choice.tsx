import { useQuery } from '@tanstack/react-query';
import { useManagesClients, useSession } from '../api/session.ts';
import { clientsQuery } from '../clients/data.ts';
import { useListState } from '../ui/list-state.ts';

/** For the operator: the client whose tokens the list shows, in the URL. */
export function ClientChoice() {
  const state = useListState();
  const { client_id } = useSession();
  const isOffered = useManagesClients();
  const clients = useQuery({ ...clientsQuery, enabled: isOffered }).data?.results ?? [];
  if (!isOffered || clients.length < 2) return null;
  return (
    <select
      aria-label="Client"
      value={state.get('client') || String(client_id)}
      onChange={(event) => state.set({ client: event.target.value })}
    >
      {clients.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}
