import { NoneYet } from '../ui/form/none-yet.tsx';
import { useScope } from '../ui/scope.tsx';

/** In place of the help of a select of networks, while the project has none. */
export function NoNetworkYet() {
  const to = useScope().path('networks', 'new');
  return <NoneYet text="The project has no network yet." to={to} action="Create a network" />;
}
