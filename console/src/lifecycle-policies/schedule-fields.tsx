import './lifecycle-policies.css';
import type { ReactNode } from 'react';
import { Field } from '../ui/form/field.tsx';
import type { Form, Values } from '../ui/form/use-form.ts';
import { ScheduleForesight } from './foresight.tsx';
import { toScheduleInput } from './schedule-input.ts';

const TYPES = [
  { value: 'cron', label: 'At certain times (cron)' },
  { value: 'interval', label: 'At a fixed interval' },
];
const CRON = [
  ['minute', 'Minute', '0'],
  ['hour', 'Hour', '3'],
  ['day', 'Day of month', '*, 1, last, 2nd mon'],
  ['month', 'Month', '*, 1-6, jan'],
  ['day_of_week', 'Weekday', '*, mon-fri'],
  ['week', 'ISO week', '*'],
] as const;
const UNITS = [
  ['weeks', 'Weeks'],
  ['days', 'Days'],
  ['hours', 'Hours'],
  ['minutes', 'Minutes'],
] as const;

interface ScheduleFieldsProps {
  readonly form: Form;
  /** Path of the schedule in the body, with a dot; empty for a body that is a schedule. */
  readonly prefix: string;
  readonly title: string;
  readonly action?: ReactNode;
}

/** The fields of one schedule, its next run times and its words. */
export function ScheduleFields({ form: whole, prefix, title, action }: ScheduleFieldsProps) {
  // Which times are optional depends on the others, so none is marked.
  const form: Form = { ...whole, isEdit: true };
  const at = (name: string) => `${prefix}${name}`;
  const type = form.get(at('type'));
  const values = (prefix === '' ? form.body : form.get(prefix.slice(0, -1))) as Values;
  return (
    <fieldset className="group schedule-fields">
      <legend>{title}</legend>
      {action}
      <Field form={form} path={at('type')} label="Runs" help="" choices={TYPES} />
      {type === 'interval' ? (
        <div className="schedule-units">
          {UNITS.map(([name, label]) => (
            <Field key={name} form={form} path={at(name)} label={label} help="" />
          ))}
        </div>
      ) : (
        <>
          <div className="schedule-cron">
            {CRON.map(([name, label, placeholder]) => (
              <Field key={name} form={form} path={at(name)} label={label} help="" placeholder={placeholder} />
            ))}
          </div>
          <Field form={form} path={at('timezone')} label="Time zone" help="" placeholder="UTC" />
        </>
      )}
      <Field form={form} path={at('max_quantity')} label="Snapshots to keep of each volume" help="" />
      <fieldset className="field">
        <legend>
          Delete snapshots older than <span className="optional">(optional)</span>
        </legend>
        <div className="schedule-units">
          {UNITS.map(([name, label]) => (
            <Field key={name} form={form} path={at(`retention_time.${name}`)} label={`${label} of age`} help="" />
          ))}
        </div>
      </fieldset>
      <Field form={form} path={at('resource_name_template')} label="Name of the snapshots" />
      <ScheduleForesight schedule={toScheduleInput(values)} />
    </fieldset>
  );
}
