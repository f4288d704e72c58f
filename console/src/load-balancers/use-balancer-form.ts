import type { Form } from '../ui/form/use-form.ts';
import { type RequestFormOptions, type Sent, useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { KIND } from './data.ts';

interface BalancerFormOptions extends Omit<RequestFormOptions<unknown>, 'queryKind' | 'sent'> {
  /** The texts of the toast, and the tab of the load balancer that opens. */
  readonly sent: (body: Readonly<Record<string, unknown>>) => Pick<Sent, 'busy' | 'done'> & {
    readonly tab?: 'listeners' | 'pools';
  };
}

/** A form that changes a load balancer or its parts. */
export function useBalancerForm(balancerId: string, { sent, ...options }: BalancerFormOptions): Form {
  const to = useScope().path('load-balancers', balancerId);
  return useRequestForm({
    ...options,
    queryKind: KIND,
    sent: (body) => {
      const { tab, ...texts } = sent(body);
      return { ...texts, link: { to, text: 'Open' }, to, search: { tab } };
    },
  });
}
