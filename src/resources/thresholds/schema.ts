/** Requests and responses of the notification threshold (docs/interface.md, "Notification threshold"). */
import { type Static, type TSchema, Type } from 'typebox';
import { Body, Component, Described, Input, Instant, IntegerId, Nullable, ShortText } from '../../http/shapes.ts';
import { defaultThreshold } from '../../quota/crossings.ts';
import { globalKinds, regionalKinds } from '../../quota/kinds.ts';

/** The largest limit that clients accept. JSON cannot represent it exactly; counters hold far less. */
const maxLimit = 9_223_372_036_854_776_000;

const Figure = Input(
  'QuotaFigure',
  {
    limit: Type.Integer({ minimum: 0, maximum: maxLimit, description: 'Limit of the quota' }),
    usage: Type.Integer({ minimum: 0, description: 'Usage of the quota' }),
  },
  'Limit and usage of a quota',
);
type Figure = Static<typeof Figure>;

const figures = (kinds: string[]) =>
  Object.fromEntries(
    kinds.flatMap((kind) => [
      [`${kind}_limit`, Type.Optional(Figure)],
      [`${kind}_usage`, Type.Optional(Figure)],
    ]),
  );

const GlobalFigures = Input('GlobalQuotasMessage', figures(globalKinds), 'Global quotas that reached the threshold');
const RegionalFigures = Input('RegionalQuotasMessage', {
  region_id: Described(IntegerId, 'ID of the region'),
  region_name: Described(ShortText, 'Name of the region'),
  ...(figures(regionalKinds) as Record<string, TSchema>),
});

/** The kinds that reached the threshold. */
export const QuotasMessage = Input(
  'QuotasMessage',
  {
    global_quotas: GlobalFigures,
    regional_quotas: Type.Array(RegionalFigures, {
      maxItems: 100,
      description: 'Quotas of each region that reached the threshold',
    }),
  },
  'Quotas that reached the threshold',
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
export const SetThreshold = Body('SetNotificationThreshold', [{ threshold: 80 }], {
  threshold: Type.Optional(Percent),
  last_message: Type.Optional(Described(Nullable(QuotasMessage), 'Ignored')),
  last_sending: Type.Optional(Described(Nullable(Instant), 'Ignored')),
});
export type SetThreshold = { threshold?: number };

export const Threshold = Component('NotificationThreshold', {
  client_id: Type.Integer({ description: 'ID of the client' }),
  threshold: Type.Integer({ description: 'Percentage of the limit' }),
  last_message: Described(Nullable(Type.Unsafe<QuotasMessage>(QuotasMessage)), 'The last notification, or null'),
  last_sending: Described(
    Nullable(Type.String({ format: 'date-time' })),
    'When the last notification was sent, or null',
  ),
});
export type Threshold = Static<typeof Threshold>;
