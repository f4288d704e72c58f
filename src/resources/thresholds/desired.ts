/** Pure: the message to a client about crossings of its threshold. */
import type { Crossing } from '../../quota/crossings.ts';
import { globalRegion, meaningOfKind } from '../../quota/kinds.ts';
import type { Message } from '../notifications/service.ts';
import type { QuotasMessage } from './schema.ts';

interface ClientOfMessage {
  id: number;
  name: string;
  threshold: number;
}

type NameOfRegion = (regionId: number) => string;

/** Each figure is under both of its keys, as `{limit, usage}` (docs/interface.md, "Notification threshold"). */
export function quotasMessage(crossings: Crossing[], nameOf: NameOfRegion): QuotasMessage {
  const message: QuotasMessage = { global_quotas: {}, regional_quotas: [] };
  for (const { regionId, kind, limit, usage } of crossings) {
    const figures = { [`${kind}_limit`]: { limit, usage }, [`${kind}_usage`]: { limit, usage } };
    if (regionId === globalRegion) {
      Object.assign(message.global_quotas, figures);
      continue;
    }
    let region = message.regional_quotas.find(({ region_id }) => region_id === regionId);
    if (!region) {
      region = { region_id: regionId, region_name: nameOf(regionId) };
      message.regional_quotas.push(region);
    }
    Object.assign(region, figures);
  }
  return message;
}

/** One message about all crossings in a window. */
export function thresholdMessage(client: ClientOfMessage, crossings: Crossing[], nameOf: NameOfRegion): Message {
  const { id, name, threshold } = client;
  const which = crossings.length === 1 ? meaningOfKind[crossings[0]!.kind] : `${crossings.length} quotas`;
  return {
    clientId: id,
    type: 'quota_threshold',
    subject: `${name} has reached ${threshold} % of ${which}`,
    body: {
      paragraphs: [
        `${name} (client ${id}) has reached ${threshold} % of ${crossings.length === 1 ? 'this quota' : 'these quotas'}:`,
        'Existing resources are not affected. Requests that would exceed a limit are refused. The next notification ' +
          `follows when the usage has fallen below ${threshold} % and reaches it again.`,
      ],
      figures: {
        columns: ['Region', 'Quota', 'In use', 'Limit', '%'],
        rows: crossings.map(({ regionId, kind, usage, limit }) => [
          regionId === globalRegion ? 'all' : nameOf(regionId),
          `${meaningOfKind[kind]} (${kind})`,
          String(usage),
          String(limit),
          percentOf(usage, limit),
        ]),
      },
    },
    data: { threshold, ...quotasMessage(crossings, nameOf) },
  };
}

/** Rounded down, so that 100 % means that the quota is exhausted. */
function percentOf(usage: number, limit: number): string {
  return limit === 0 ? '–' : String(Math.floor((usage * 100) / limit));
}
