import { useEffect, useState } from 'react';
import { ApiError, messageOf } from '../../api/errors.ts';
import { type Keys, withKeys } from '../../api/idempotency-keys.ts';
import type { Call } from '../by-code.tsx';
import { showToast } from '../toasts.tsx';
import { type JsonSchema, type Problem, validate } from './schema.ts';
import { useIsOpen } from './use-leave.ts';

export type Values = Readonly<Record<string, unknown>>;

export interface Form {
  /** The request of the form. */
  readonly call: Omit<Call, 'body'>;
  readonly schema: JsonSchema;
  /** Fields of an edit have values: none is marked as optional. */
  readonly isEdit: boolean;
  /** The fields by name; nested ones by path: `network.network_id`. */
  readonly get: (path: string) => unknown;
  readonly set: (path: string, value: unknown) => void;
  /** The request body: what was typed, without empty optional fields. */
  readonly body: Values;
  /** Problems of a field; those of the browser after the first attempt to submit, those of the server until it changes. */
  readonly errorsAt: (path: string) => readonly string[];
  /** A failure that belongs to no field of the form. */
  readonly failure: { readonly message: string; readonly details: readonly string[] } | null;
  readonly isDirty: boolean;
  readonly isSubmitting: boolean;
  readonly submit: () => Promise<void>;
  /** A field that is shown registers itself: errors of others are shown at the top. Returns the function that unregisters. */
  readonly register: (path: string) => () => void;
}

const MARKED = 'Correct the marked fields';

export interface FormOptions {
  readonly call: Omit<Call, 'body'>;
  readonly schema: JsonSchema;
  readonly initial: Values;
  readonly isEdit?: boolean;
  /** Body to send for the fields; by default all that are not empty. An edit sends all, because omitted fields keep their values. */
  readonly toBody?: (values: Values) => Values;
  /** Sends the request. What it throws is shown in the form, which keeps its text. */
  readonly send: (body: Values) => Promise<void>;
}

/**
 * The resource as it was when its dialog opened. An edit sends what differs from it; compared with live data, it would send
 * back what another client has changed meanwhile.
 */
export function useInitial<T>(resource: T): T {
  return useState(resource)[0];
}

/** The state of a form whose rules are a request component of openapi.json. */
export function useForm({
  call,
  schema,
  initial,
  isEdit = false,
  toBody = isEdit ? (all) => all : withoutEmpty,
  send,
}: FormOptions): Form {
  const [start] = useState(initial);
  const [values, setValues] = useState<Values>(start);
  const [wasTried, setTried] = useState(false);
  const [isSubmitting, setSubmitting] = useState(false);
  const [isDone, setDone] = useState(false);
  const [failure, setFailure] = useState<Form['failure']>(null);
  const [fromServer, setFromServer] = useState<readonly Problem[]>([]);
  const [fields] = useState(() => new Set<string>());
  const [keys] = useState<Keys>(() => new Map());
  const isOpen = useIsOpen();
  // In an effect: the marks of the fields are then in the document.
  useEffect(() => {
    if (failure) focusFirstError();
  }, [failure]);
  const body = toBody(values);
  const problems = wasTried ? validate(schema, body) : [];

  async function submit(): Promise<void> {
    setTried(true);
    setFailure(null);
    setFromServer([]);
    const found = validate(schema, body);
    if (found.length > 0) {
      setFailure(failureOf(MARKED, withoutField(found, fields)));
      return;
    }
    setSubmitting(true);
    try {
      setDone(true);
      await withKeys(keys, () => send(body));
    } catch (error) {
      setDone(false);
      // The form was closed while its request was sent.
      if (!isOpen()) return void showToast({ tone: 'bad', text: messageOf(error) });
      // The sign-in dialog covers the form, which can be sent again after it.
      if (error instanceof ApiError && error.status === 401) return;
      const named = error instanceof ApiError ? error.fields : [];
      setFromServer(named);
      const others = withoutField(named, fields);
      // The message of invalid input repeats those of the fields.
      const isMarked = error instanceof ApiError && error.status === 400 && others.length < named.length;
      setFailure(failureOf(isMarked ? MARKED : messageOf(error), others));
    } finally {
      setSubmitting(false);
    }
  }
  return {
    call,
    schema,
    isEdit,
    body,
    failure,
    isSubmitting,
    submit,
    isDirty: !isDone && JSON.stringify(values) !== JSON.stringify(start),
    get: (path) => getAt(values, path),
    set: (path, value) => {
      setValues((current) => setAt(current, path.split('.'), value) as Values);
      setFromServer((current) => current.filter((problem) => !belongsTo(problem.path, path)));
    },
    errorsAt: (path) => {
      const found = [...problems, ...fromServer].filter((problem) => belongsTo(problem.path, path));
      return [...new Set(found.map(describe(path, Array.isArray(getAt(values, path)))))];
    },
    register: (path) => {
      fields.add(path);
      return () => void fields.delete(path);
    },
  };
}

function belongsTo(problem: string, field: string): boolean {
  return problem === field || problem.startsWith(`${field}.`);
}

/** A problem inside a field names its place: `row 2, name` of a list, or the key of a map. */
function describe(field: string, isList: boolean): (problem: Problem) => string {
  return ({ path, message: original }) => {
    const message = countedFromOne(original, path);
    if (path === field) return message;
    const place = path.slice(field.length + 1);
    if (!isList) return place === '' ? `empty key: ${message}` : `${place}: ${message}`;
    const [index, ...rest] = place.split('.');
    return `${[`row ${Number(index) + 1}`, ...rest].join(', ')}: ${message}`;
  };
}

/** The API counts items from 0, and forms from 1: `containers.0` in the message of `containers.2` is `container 1`. */
function countedFromOne(message: string, path: string): string {
  const lists = [...path.matchAll(/(\w+)\.\d+/g)].map(([, name]) => name!);
  return message.replace(/\b(\w+)\.(\d+)\b/g, (text, name: string, index: string) =>
    lists.includes(name) ? `${name.replace(/(?<!s)s$/, '')} ${Number(index) + 1}` : text,
  );
}

function withoutField(problems: readonly Problem[], fields: ReadonlySet<string>): string[] {
  return problems
    .filter(({ path }) => ![...fields].some((field) => belongsTo(path, field)))
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
}

/** Some messages of the server contain those of the fields. */
function failureOf(message: string, problems: readonly string[]) {
  const details = problems.filter((text) => !message.includes(text.replace(/^\S+: /, '')));
  return { message, details };
}

function focusFirstError(): void {
  for (const closed of document.querySelectorAll<HTMLDetailsElement>('details:has([aria-invalid=true])'))
    closed.open = true;
  const first =
    document.querySelector<HTMLElement>('[aria-invalid=true]') ??
    document.querySelector<HTMLElement>('.form .notice.bad');
  first?.focus();
}

/** The field whose entries were typed: a tag without a value is not an empty field, and the server refuses it. */
export const TAGS = 'tags';

/** Values without empty texts, undefined and objects that thereby became empty. An empty list or map that was typed stays. */
export function withoutEmpty(values: Values): Values {
  const kept = Object.entries(values).flatMap(([key, value]): [string, unknown][] => {
    if (value === undefined || value === '') return [];
    if (!isPlain(value) || key === TAGS) return [[key, value]];
    const inner = withoutEmpty(value);
    return Object.keys(inner).length === 0 && Object.keys(value).length > 0 ? [] : [[key, inner]];
  });
  return Object.fromEntries(kept);
}

export function isPlain(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function getAt(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => (inner as Values | undefined)?.[name], value);
}

function setAt(value: unknown, [first, ...rest]: readonly string[], next: unknown): unknown {
  if (first === undefined) return next;
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === first ? setAt(item, rest, next) : item));
  const object = isPlain(value) ? value : {};
  return { ...object, [first]: setAt(object[first], rest, next) };
}
