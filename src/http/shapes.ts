/**
 * Shapes that the schemas of many resources share. A shape with a `title` becomes a component of the OpenAPI document, and
 * a type of that name in generated clients.
 */
import { type TProperties, type TSchema, Type } from 'typebox';
import { pattern } from './patterns.ts';

/** The same shape with a description, and with an example for the API reference. */
export const Described = <T extends TSchema>(schema: T, description: string, example?: unknown): T => ({
  ...schema,
  description,
  ...(example !== undefined && { examples: [example] }),
});

/** The same shape with a description, as a component of the API document: for shapes that many resources have. */
export const Named = <T extends TSchema>(title: string, schema: T, description: string): T => ({
  ...Described(schema, description),
  title,
});

const describing = (description: string | undefined) => (description === undefined ? {} : { description });

/** An object, as a component of the API document. */
export const Component = <P extends TProperties>(title: string, properties: P, description?: string) =>
  Type.Object(properties, { title, ...describing(description) });

/** An object in a request, as a component of the API document. Unknown fields are errors. */
export const Input = <P extends TProperties>(title: string, properties: P, description?: string) =>
  Type.Object(properties, { title, additionalProperties: false, ...describing(description) });

/** The body of a request: an `Input` with examples for the API reference. */
export const Body = <P extends TProperties>(title: string, examples: object[], properties: P, description?: string) =>
  Type.Object(properties, { title, additionalProperties: false, ...describing(description), examples });

/** Fields of the same shape, by their descriptions. */
export const FieldsOf = <Field extends string, T extends TSchema, Description = string>(
  descriptions: Record<Field, Description>,
  shape: (description: Description, field: Field) => T,
) => {
  const fields = Object.entries<Description>(descriptions).map(([field, text]) => [field, shape(text, field as Field)]);
  return Object.fromEntries(fields) as Record<Field, T>;
};

/** Option of a shape with all fields of these named shapes: the API document refers to them and does not repeat their fields. */
export const extending = (...bases: TSchema[]) => ({
  extends: bases.map((base) => (base as { title?: string }).title!),
});

/** The type or `null`. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** Fields of responses that may be null. */
export const OrNull = {
  text: (description: string) => Described(Nullable(Type.String()), description),
  integer: (description: string) => Described(Nullable(Type.Integer()), description),
  number: (description: string) => Described(Nullable(Type.Number()), description),
};

/** A date in a request. */
export const Instant = Type.String({ format: 'iso-date-time' });

/** An integer in the range of the PostgreSQL type `integer`. */
export const IntegerId = Type.Integer({ title: 'IntegerId', minimum: -2_147_483_648, maximum: 2_147_483_647 });

/** An ID that a filter names, of 64 bits in the official API. One that no row can have matches nothing. */
export const FilterId = Type.Integer({
  title: 'FilterId',
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
});

/** In a body. Older official clients name their client; `requireOwnClient` checks it. */
export const OwnClient = Type.Optional(
  Type.Union([FilterId, Type.Null()], { description: 'ID of the client of the token, the only one that is allowed' }),
);

export const exampleUuid = '0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10';
export const Uuid = Type.String({ format: 'uuid' });

export const nameRule =
  '3 to 63 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-`';

export const namePattern = '[a-zA-Z0-9][a-zA-Z 0-9._\\-]{1,61}[a-zA-Z0-9._]';

export const Name = Type.String({
  title: 'Name',
  pattern: pattern(`^${namePattern}$`, nameRule),
  maxLength: 63,
  description: nameRule,
});

/** Text without control characters. Not `\P{Cc}`, which many tools cannot read. */
export const noControlCharacters = pattern('^[^\\u0000-\\u001F\\u007F-\\u009F]*$', 'text without control characters');

/** Text that is only compared, such as a part of a name, or that is accepted and ignored. */
export const ShortText = Type.String({ maxLength: 255 });

export const TaskIds = Type.Object(
  { tasks: Type.Array(Type.String(), { description: 'IDs of the tasks; each operation starts one' }) },
  { title: 'TaskIds', examples: [{ tasks: [exampleUuid] }] },
);

/** The most values of a query parameter that may be repeated. */
export const maxFilterValues = 1000;

/** The query parameter `order_by`: a field and a direction, such as `name.asc`. `others`: values of another form. */
export const OrderBy = <Field extends string, Other extends string = never>(
  fields: readonly Field[],
  defaultOrder: `${NoInfer<Field>}.asc` | `${NoInfer<Field>}.desc`,
  others: readonly Other[] = [],
) =>
  Type.Optional(
    Type.Enum([...fields.flatMap((field) => [`${field}.asc`, `${field}.desc`] as const), ...others], {
      default: defaultOrder,
      description: 'Field and direction of the order',
    }),
  );

/** Query parameters of a page of a list. `defaultLimit`: results if the request has no `limit`. */
export const Paging = (defaultLimit: number) => ({
  limit: Type.Optional(
    Type.Integer({
      exclusiveMinimum: 0,
      maximum: 1000,
      default: defaultLimit,
      description: 'Maximum number of results',
    }),
  ),
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 0,
      description: 'Number of results to skip',
    }),
  ),
});

/** The query of a list without filters. */
export const Page = Type.Object(Paging(1000));

/** GiB. The bound keeps sums of sizes far below the largest integer of a quota counter. */
export const maxSizeGib = 1_000_000_000;
export const SizeGib = Type.Integer({ minimum: 1, maximum: maxSizeGib, description: 'Size in GiB' });
/** The size in an update, which cannot change it. */
export const CurrentSizeGib = Type.Optional(
  Described(SizeGib, 'The current size in GiB; to change it, use the operation `extend`'),
);
/** The body of the operation `extend`. */
export const ExtendBody = (title: string) =>
  Body(title, [{ size: 2 }], { size: Described(SizeGib, 'New size in GiB; larger than the current one') });

export const IpNetwork = Type.String({ format: 'ip-network', description: 'IP address or network in CIDR notation' });
export const IpAddress = Type.String({ format: 'ip-address', description: 'IPv4 or IPv6 address' });

/** A date with its offset, in responses. */
export const DateTime = Type.String({ format: 'date-time', description: 'RFC 3339, UTC' });

const QuotaFigure = (description: string) => Type.Optional(Type.Integer({ description }));

/** The response of a check of limits. `descriptions`: of its figures, by field. */
export const RequiredQuota = <Field extends string>(title: string, descriptions: Record<Field, string>) =>
  Component(title, FieldsOf(descriptions, QuotaFigure), 'Only the quotas that would be exceeded');

/** Response fields of every resource that belongs to a project and a region. */
export const PlaceFields = {
  project_id: Type.Integer({ description: 'ID of the project' }),
  region: Type.String({ description: 'Name of the region' }),
  region_id: Type.Integer({ description: 'ID of the region' }),
};

/** Response fields of every resource that tasks create and change. */
export const TaskFields = {
  creator_task_id: Described(Uuid, 'ID of the task that created the resource'),
  task_id: Named(
    'ActiveTaskId',
    Nullable(Uuid),
    'ID of the task that is changing the resource; null if it is not changing',
  ),
};

const Count = Type.Integer({
  title: 'ResultCount',
  minimum: 0,
  description: 'Number of all matches, on this page or not',
});

/** A page of a list. Its title is the title of the item with `Collection` appended. */
export const Collection = <T extends TSchema>(item: T) => {
  const { title } = item as { title?: string };
  return Type.Object(
    {
      count: Count,
      results: Type.Array(item, { description: 'The matches on this page' }),
    },
    title === undefined ? {} : { title: `${title}Collection` },
  );
};
