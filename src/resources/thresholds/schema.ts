/** Requests and responses of the notification threshold (docs/interface.md, "Notification threshold"). */
import { Type } from 'typebox';
import type { Static, TSchema } from 'typebox';
import { IntegerId, Nullable, ShortText } from '../../http/shapes.ts';
import { defaultThreshold } from '../../quota/crossings.ts';
import { globalKinds, regionalKinds } from '../../quota/kinds.ts';

export const ClientPath = Type.Object({ client_id: IntegerId });

/** The largest limit that clients accept. JSON cannot represent it exactly; counters hold far less. */
const maxLimit = 9_223_372_036_854_776_000;

const Figure = Type.Object(
  { limit: Type.Integer({ minimum: 0, maximum: maxLimit }), usage: Type.Integer({ minimum: 0 }) },
  { additionalProperties: false },
);
export type Figure = Static<typeof Figure>;

/** Kinds that real clients know beside those of the interface: a message of theirs may name them. */
const alsoGlobal = ['inference_public_model_api_key_count'];
const alsoRegional = ['slurm_cluster_count'];

const figures = (kinds: string[]) =>
  Object.fromEntries(
    kinds.flatMap((kind) => [
      [`${kind}_limit`, Type.Optional(Figure)],
      [`${kind}_usage`, Type.Optional(Figure)],
    ]),
  );

const GlobalFigures = Type.Object(figures([...globalKinds, ...alsoGlobal]), { additionalProperties: false });
const RegionalFigures = Type.Object(
  {
    region_id: IntegerId,
    region_name: ShortText,
    ...(figures([...regionalKinds, ...alsoRegional]) as Record<string, TSchema>),
  },
  { additionalProperties: false },
);

/** What a message tells: the kinds that reached the threshold. */
export const QuotasMessage = Type.Object(
  { global_quotas: GlobalFigures, regional_quotas: Type.Array(RegionalFigures, { maxItems: 100 }) },
  { additionalProperties: false },
);
export interface QuotasMessage {
  global_quotas: Record<string, Figure>;
  regional_quotas: Record<string, Figure | number | string>[];
}

const Percent = Type.Integer({ minimum: 1, maximum: 100, default: defaultThreshold });

/** `last_message` and `last_sending` are checked and not obeyed: they are what was really sent, and when. */
export const SetThreshold = Type.Object(
  {
    threshold: Type.Optional(Percent),
    last_message: Type.Optional(Nullable(QuotasMessage)),
    last_sending: Type.Optional(Nullable(Type.String({ format: 'date-time' }))),
  },
  { additionalProperties: false },
);
export type SetThreshold = { threshold?: number };

export const Threshold = Type.Object({
  client_id: Type.Integer(),
  threshold: Type.Integer(),
  last_message: Nullable(Type.Unsafe<QuotasMessage>(QuotasMessage)),
  last_sending: Nullable(Type.String({ format: 'date-time' })),
});
export type Threshold = Static<typeof Threshold>;
