import schema from 'schema:MoveClock';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { CLOCK_PATH, moveClock } from './data.ts';

export function SetClock() {
  const scope = useScope();
  const leave = useLeave();
  const form = useForm({
    call: { operationId: 'moveClock', method: 'POST', path: CLOCK_PATH, params: {} },
    schema: { ...schema, required: ['set'] },
    initial: { set: '' },
    send: async (body) => {
      await moveClock(body);
      await leave({ to: scope.path('development') });
    },
  });
  return (
    <FormDialog title="Set the time" form={form} submitLabel="Set the time">
      <Field
        form={form}
        path="set"
        label="New time"
        placeholder="2030-01-01T00:00:00Z"
        help="With a time zone, such as 2030-01-01T00:00:00Z. Back in time, records of the future become records of now."
      />
    </FormDialog>
  );
}
