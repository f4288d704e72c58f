import { request } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { pathOf } from '../ui/by-code.tsx';
import type { Call } from '../ui/by-code.tsx';
import type { JsonSchema } from '../ui/form/schema.ts';
import { useForm } from '../ui/form/use-form.ts';
import type { Form, Values } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { KIND } from './data.ts';
import type { Policy } from './data.ts';

interface PolicyForm {
  readonly policy: Policy;
  readonly schema: JsonSchema;
  readonly initial: Values;
  /** As in `useForm`. */
  readonly isEdit?: boolean;
  readonly toBody?: (values: Values) => Values;
  readonly call: Omit<Call, 'body'>;
  /** For the toast: `Renamed nightly`. */
  readonly done: (body: Values) => string;
  /** Tab of the policy that opens afterwards. */
  readonly tab?: string;
}

/** A form that changes one policy. Policies change at once, without a task. */
export function usePolicyForm({ policy, schema, initial, isEdit = false, toBody, call, done, tab }: PolicyForm): Form {
  const scope = useScope();
  const leave = useLeave();
  return useForm({
    schema,
    initial,
    isEdit,
    ...(toBody && { toBody }),
    send: async (body) => {
      await request(call.method, pathOf(call), body);
      showToast({ tone: 'ok', text: done(body) });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('lifecycle-policies', policy.id), search: { tab } as never });
    },
  });
}
