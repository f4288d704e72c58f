/** Estimates for a policy before its creation: its runs, and the maximum number and price of the snapshots that it retains. */
import type { Scope } from '../../authz/actor.ts';
import { type FieldError, invalidInput, requireNoErrors } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { type Clock, instantOf, wholeSecond, withZone } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import { createPause } from '../../platform/event-loop.ts';
import type { Price } from '../pricing/schema.ts';
import type { Pricing } from '../pricing/service.ts';
import { uniqueIds, volumeErrors } from './requested-ids.ts';
import { checkSchedule, errorsOfSchedules, localTime, maxRetained, readSchedules } from './schedule-rules.ts';
import type { CreateSchedule, PreviewSchedule, SchedulePreview } from './schedule/schema.ts';
import type {
  CreateLifecyclePolicy,
  LifecyclePolicyPrice,
  LifecyclePolicyUsage,
  PriceLifecyclePolicy,
} from './schema.ts';
import * as store from './store.ts';

export interface EstimatesDeps {
  db: Db;
  clock: Clock;
  pricing: Pick<Pricing, 'snapshotOf'>;
}

export function createEstimates({ db, clock, pricing }: EstimatesDeps) {
  /** The most snapshots that these schedules keep of these volumes. @throws ClientError 400 */
  const usage = async (scope: Scope, schedules: CreateSchedule[], volumeIds: string[]) => {
    const now = wholeSecond(clock.now());
    const { checked, errors } = readSchedules(schedules, now);
    const volumes = await store.findVolumes(db, scope, uniqueIds(volumeIds));
    errors.push(...volumeErrors(volumeIds, volumes));
    requireNoErrors(errors);
    let perVolume = 0;
    for (const schedule of checked) perVolume += await maxRetained(schedule, now);
    const gib = volumes.reduce((sum, { size }) => sum + size, 0) * perVolume;
    return { perVolume, count: volumes.length * perVolume, gib, volumes };
  };

  /** The schedule and the start of a preview, and the errors in both. An invalid start is replaced by the current time. */
  const readPreview = ({ schedule, from }: ValidFields<PreviewSchedule>) => {
    const start = from === undefined ? clock.now() : instantOf(from)!;
    const isValid = start.getTime() >= 0;
    const after = isValid ? start : clock.now();
    const { type, ...given } = schedule ?? {};
    const checked = type ? checkSchedule({ ...given, type }, wholeSecond(after), 'schedule') : { errors: [] };
    const errors: FieldError[] = 'errors' in checked ? [...checked.errors] : [];
    if (!isValid) errors.push({ path: 'from', message: 'must be an instant from 1970 to 9999' });
    return { after, checked, errors };
  };

  return {
    /** For an invalid body: the errors in its schedules. */
    bodyErrors({ schedules = [] }: ValidFields<{ schedules?: CreateSchedule[] }>): FieldError[] {
      return errorsOfSchedules(schedules, wholeSecond(clock.now()));
    },

    /** For an invalid preview: the errors in its schedule and in its start. */
    previewErrors: (body: ValidFields<PreviewSchedule>): FieldError[] => readPreview(body).errors,

    /** The next runs of a schedule, as if it were created at `from`. */
    async preview(body: PreviewSchedule): Promise<SchedulePreview> {
      const { count = 10 } = body;
      const { after, checked, errors } = readPreview(body);
      if ('errors' in checked || errors.length > 0) throw invalidInput(errors);
      const runs: SchedulePreview['runs'] = [];
      const pause = createPause();
      for (let at = checked.times.next(after); at && runs.length < count; at = checked.times.next(at)) {
        runs.push({ utc: withZone(at), local: localTime(at, checked.times) });
        await pause();
      }
      return { runs };
    },

    /** The maximum usage of a policy that would be created from this body. */
    async estimate(scope: Scope, clientId: number, body: CreateLifecyclePolicy): Promise<LifecyclePolicyUsage> {
      const { perVolume, count, gib } = await usage(scope, body.schedules ?? [], body.volume_ids ?? []);
      return {
        max_cost: pricing.snapshotOf(scope, clientId, gib),
        max_volume_snapshot_count_usage: count,
        max_volume_snapshot_sequence_length: perVolume,
        max_volume_snapshot_size_usage: gib,
      };
    },

    async priceV1(scope: Scope, clientId: number, body: CreateLifecyclePolicy): Promise<Price> {
      const { gib } = await usage(scope, body.schedules ?? [], body.volume_ids ?? []);
      return pricing.snapshotOf(scope, clientId, gib);
    },

    /** The maximum cost of the policy's snapshots, by volume in the order of the request. */
    async price(scope: Scope, clientId: number, body: PriceLifecyclePolicy): Promise<LifecyclePolicyPrice> {
      const { perVolume, gib, volumes } = await usage(scope, body.schedules ?? [], body.volume_ids);
      const whole = pricing.snapshotOf(scope, clientId, gib);
      const parts = uniqueIds(body.volume_ids).map((id) => {
        const { size, typeName } = volumes.find((volume) => volume.id === id)!;
        return { type: typeName, price: pricing.snapshotOf(scope, clientId, size * perVolume) };
      });
      const by = (period: 'price_per_hour' | 'price_per_month') => ({
        volumes: parts.map(({ type, price }) => {
          const amount = price[period];
          return amount === null ? null : { type, price: amount, discount: price.discount_percent };
        }),
      });
      return {
        currency_code: whole.currency_code,
        discount: whole.discount_percent,
        per_hour: by('price_per_hour'),
        per_month: by('price_per_month'),
        price_status: whole.price_status,
        price_without_discount_per_month: whole.price_without_discount_per_month,
        tax_percent: whole.tax_percent,
        total_price_per_hour: whole.price_per_hour,
        total_price_per_month: whole.price_per_month,
      };
    },
  };
}
