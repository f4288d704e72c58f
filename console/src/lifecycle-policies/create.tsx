import schema from 'schema:CreateLifecyclePolicy';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import type { Form, Values } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { FIELDSETS, useRows } from '../ui/form/use-rows.ts';
import { Icon } from '../ui/icons.tsx';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { KIND, POLICIES, type Policy } from './data.ts';
import { Foresight } from './foresight.tsx';
import { ScheduleFields } from './schedule-fields.tsx';
import { nightly, toScheduleInput } from './schedule-input.ts';
import { VolumeChoice } from './volume-choice.tsx';

const MAX_SCHEDULES = schema.properties?.['schedules']?.maxItems ?? 10;

export function CreatePolicy() {
  const scope = useScope();
  const form = useRequestForm<Policy>({
    call: { operationId: 'createLifecyclePolicy', method: 'POST', path: POLICIES, params: scopeParams(scope) },
    schema,
    initial: { action: 'volume_snapshot', name: '', schedules: [nightly], volume_ids: [], status: 'active' },
    toBody: (values) => ({ ...values, schedules: (values['schedules'] as Values[]).map(toScheduleInput) }),
    queryKind: KIND,
    sent: (_body, policy) => ({
      done: `Created lifecycle policy ${policy.name}`,
      to: scope.path('lifecycle-policies', policy.id),
    }),
  });
  return (
    <FormDialog title="Create lifecycle policy" form={form} submitLabel="Create lifecycle policy">
      <Field form={form} path="name" label="Name" />
      <Schedules form={form} />
      <VolumeChoice form={form} />
      <Foresight
        schedules={(form.get('schedules') as Values[]).map(toScheduleInput)}
        volumeIds={form.get('volume_ids') as string[]}
      />
    </FormDialog>
  );
}

function Schedules({ form }: { form: Form }) {
  const schedules = form.get('schedules') as readonly Values[];
  const { list, add, remove } = useRows({
    rows: schedules,
    set: (next) => form.set('schedules', next),
    newRow: { ...nightly, type: 'interval', days: 1 },
    selector: FIELDSETS,
  });
  return (
    <div className="form" ref={list}>
      {schedules.map((_, index) => (
        <ScheduleFields
          key={index}
          form={form}
          prefix={`schedules.${index}.`}
          title={`Schedule ${index + 1}`}
          action={
            <button
              type="button"
              className="button quiet icon"
              aria-label={`Remove schedule ${index + 1}`}
              onClick={() => remove(index)}
            >
              <Icon name="trash" />
            </button>
          }
        />
      ))}
      {schedules.length < MAX_SCHEDULES && (
        <div>
          <button type="button" className="button small" onClick={add}>
            <Icon name="plus" /> Add schedule
          </button>
        </div>
      )}
    </div>
  );
}
