import { useEffect, useId } from 'react';
import { FieldErrors } from '../../ui/form/field.tsx';
import type { Form } from '../../ui/form/use-form.ts';
import { useRows } from '../../ui/form/use-rows.ts';
import { Icon } from '../../ui/icons.tsx';

/** A member as the form edits it; other settings of the member are kept. */
interface Member {
  readonly address?: string;
  readonly protocol_port?: unknown;
  readonly weight?: unknown;
  readonly monitor_address?: string;
  readonly monitor_port?: unknown;
  readonly backup?: boolean;
  readonly admin_state_up?: boolean;
}
type TextName = 'address' | 'protocol_port' | 'weight' | 'monitor_address' | 'monitor_port';
type CheckName = 'backup' | 'admin_state_up';

const NEW: Member = { address: '', protocol_port: 80, weight: 1, backup: false, admin_state_up: true };

const TEXTS: readonly TextName[] = ['address', 'protocol_port', 'weight', 'monitor_address', 'monitor_port'];
const ADDRESSES: readonly TextName[] = ['address', 'monitor_address'];
/** What distinguishes a member from others. */
const IDENTITY: readonly TextName[] = ['address', 'protocol_port'];
const PLACEHOLDERS: { readonly [Name in TextName]?: string } = {
  address: '10.0.0.10',
  monitor_address: 'same',
  monitor_port: 'same',
};

interface MemberTableProps {
  readonly form: Form;
  readonly path: string;
  /** Whether the pool has a health monitor. */
  readonly isMonitored: boolean;
}

/** The members of a pool as rows of a table. */
export function MemberTable({ form, path, isMonitored }: MemberTableProps) {
  const id = useId();
  const members = (form.get(path) as readonly Member[] | undefined) ?? [];
  useEffect(() => form.register(path));
  const set = (next: readonly Member[]) => form.set(path, next);
  // A new row has the port of the last one.
  const newRow = { ...NEW, protocol_port: members.at(-1)?.protocol_port ?? NEW.protocol_port };
  const { list, add, remove } = useRows<Member, HTMLFieldSetElement>({ rows: members, set, newRow });
  return (
    <fieldset ref={list} className="field" aria-describedby={`${id}-help ${id}-error`}>
      <legend>Members</legend>
      {members.length > 0 && (
        <div className="table-wrap">
          <table className="member-table">
            <thead>
              <tr>
                <th scope="col">Address</th>
                <th scope="col">Port</th>
                <th scope="col">Weight</th>
                <th scope="col">Traffic</th>
                <th scope="col">Backup</th>
                {isMonitored && <th scope="col">Check address</th>}
                {isMonitored && <th scope="col">Check port</th>}
                <th scope="col">
                  <span className="visually-hidden">Remove</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {members.map((member, index) => (
                <MemberRow
                  key={index}
                  form={form}
                  path={`${path}.${index}`}
                  number={index + 1}
                  errorId={`${id}-error`}
                  isMonitored={isMonitored}
                  member={member}
                  set={(next) => set(members.map((each, at) => (at === index ? next : each)))}
                  remove={() => remove(index)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div>
        <button type="button" className="button small" onClick={add}>
          <Icon name="plus" /> Add member
        </button>
      </div>
      <p id={`${id}-help`} className="help">
        A member without traffic is drained: open connections end, and new ones go to the others. Backup members get
        traffic while all others are down.
      </p>
      <FieldErrors id={`${id}-error`} errors={form.errorsAt(path)} />
    </fieldset>
  );
}

interface MemberRowProps {
  readonly form: Form;
  readonly path: string;
  readonly number: number;
  readonly errorId: string;
  readonly isMonitored: boolean;
  readonly member: Member;
  readonly set: (member: Member) => void;
  readonly remove: () => void;
}

function MemberRow({ form, path, number, errorId, isMonitored, member, set, remove }: MemberRowProps) {
  const isFaulty = (name: TextName) => form.errorsAt(`${path}.${name}`).length > 0;
  // Such as a member that is listed twice.
  const isRowFaulty = form.errorsAt(path).length > 0 && !TEXTS.some(isFaulty);
  const text = (name: TextName, label: string) => (
    <td className={ADDRESSES.includes(name) ? 'member-address' : 'member-number'}>
      <input
        aria-label={`${label} ${number}`}
        aria-invalid={isFaulty(name) || (isRowFaulty && IDENTITY.includes(name))}
        aria-describedby={errorId}
        inputMode={ADDRESSES.includes(name) ? 'text' : 'numeric'}
        spellCheck={false}
        autoComplete="off"
        placeholder={PLACEHOLDERS[name]}
        value={String(member[name] ?? '')}
        onChange={({ target }) =>
          set({ ...member, [name]: ADDRESSES.includes(name) ? target.value : numberOf(target.value) })
        }
      />
    </td>
  );
  const check = (name: CheckName, label: string, byDefault: boolean) => (
    <td>
      <input
        type="checkbox"
        aria-label={`${label} ${number}`}
        checked={member[name] ?? byDefault}
        onChange={({ target }) => set({ ...member, [name]: target.checked })}
      />
    </td>
  );
  return (
    <tr>
      {text('address', 'Address')}
      {text('protocol_port', 'Port')}
      {text('weight', 'Weight')}
      {check('admin_state_up', 'Traffic', true)}
      {check('backup', 'Backup', false)}
      {isMonitored && text('monitor_address', 'Check address of member')}
      {isMonitored && text('monitor_port', 'Check port of member')}
      <td>
        <button type="button" className="button quiet icon" aria-label={`Remove member ${number}`} onClick={remove}>
          <Icon name="trash" />
        </button>
      </td>
    </tr>
  );
}

/** Other text stays as typed, and the validation names it. With `1.` as the number 1, typing `1.5` would result in 15. */
function numberOf(text: string): unknown {
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}
