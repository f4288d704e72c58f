/** Requests and responses of the notification threshold (docs/interface.md, "Notification threshold"). */
import { type Static, type TSchema, Type } from 'typebox';
import { Described, Instant, IntegerId, Nullable, ShortText } from '../../http/shapes.ts';
import { defaultThreshold } from '../../quota/crossings.ts';
import { globalKinds, regionalKinds } from '../../quota/kinds.ts';

/** The largest limit that clients accept. JSON cannot represent it exactly; counters hold far less. */
const maxLimit = 9_223_372_036_854_776_000;

const Figure = Type.Object(
  {
    limit: Type.Integer({ minimum: 0, maximum: maxLimit, description: 'Limit of the quota' }),
    usage: Type.Integer({ minimum: 0, description: 'Usage of the quota' }),
  },
  { title: 'QuotaFigure', additionalProperties: false, description: 'Limit and usage of a quota' },
);
type Figure = Static<typeof Figure>;

const figures = (kinds: string[]) =>
  Object.fromEntries(
    kinds.flatMap((kind) => [
      [`${kind}_limit`, Type.Optional(Figure)],
      [`${kind}_usage`, Type.Optional(Figure)],
    ]),
  );

const GlobalFigures = Type.Object(figures(globalKinds), {
  title: 'GlobalQuotasMessage',
  additionalProperties: false,
  description: 'Global quotas that reached the threshold',
});
const RegionalFigures = Type.Object(
  {
    region_id: Described(IntegerId, 'ID of the region'),
    region_name: Described(ShortText, 'Name of the region'),
    ...(figures(regionalKinds) as Record<string, TSchema>),
  },
  { title: 'RegionalQuotasMessage', additionalProperties: false },
);

/** The kinds that reached the threshold. */
export const QuotasMessage = Type.Object(
  {
    global_quotas: GlobalFigures,
    regional_quotas: Type.Array(RegionalFigures, {
      maxItems: 100,
      description: 'Quotas of each region that reached the threshold',
    }),
  },
  { title: 'QuotasMessage', additionalProperties: false, description: 'Quotas that reached the threshold' },
);
export interface QuotasMessage {
  global_quotas: Record<string, Figure>;
  regional_quotas: Record<string, Figure | number | string>[];
}

const Percent = Type.Integer({
  minimum: 1,
  maximum: 100,
  default: defaultThreshold,
  description: 'Percentage of the limit',
});

/** `last_message` and `last_sending` are validated and ignored: the server sets them. */
export const SetThreshold = Type.Object(
  {
    threshold: Type.Optional(Percent),
    last_message: Type.Optional(Described(Nullable(QuotasMessage), 'Ignored')),
    last_sending: Type.Optional(Described(Nullable(Instant), 'Ignored')),
  },
  { title: 'SetNotificationThreshold', additionalProperties: false, examples: [{ threshold: 80 }] },
);
export type SetThreshold = { threshold?: number };

export const Threshold = Type.Object(
  {
    client_id: Type.Integer({ description: 'ID of the client' }),
    threshold: Type.Integer({ description: 'Percentage of the limit' }),
    last_message: Described(Nullable(Type.Unsafe<QuotasMessage>(QuotasMessage)), 'The last notification, or null'),
    last_sending: Described(
      Nullable(Type.String({ format: 'date-time' })),
      'When the last notification was sent, or null',
    ),
  },
  { title: 'NotificationThreshold' },
);
export type Threshold = Static<typeof Threshold>;
