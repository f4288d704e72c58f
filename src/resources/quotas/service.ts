/** Limits and usage of a client's quotas, and how the operator changes limits. The counters are in src/quota. */
import type { RequestContext } from '../../authz/actor.ts';
import { type FieldError, requireNoErrors } from '../../errors/catalogue.ts';
import type { IsInvalid, ValidFields } from '../../errors/valid-fields.ts';
import type { Drift } from '../../quota/audit.ts';
import { globalKinds, globalRegion, type Kind, regionalKinds } from '../../quota/kinds.ts';
import type { Clients } from '../clients/service.ts';
import type { Regions } from '../regions/service.ts';
import { type Collection, type ServiceDeps, toQuotaFields } from '../service-kit.ts';
import type { QuotaDrift, UpdateClientQuotas } from './schema.ts';

type Figures = Record<string, number>;

export type ClientQuotas = ReturnType<typeof createClientQuotas>;

interface ClientQuotasDeps extends Pick<ServiceDeps, 'db' | 'quota' | 'idempotency'> {
  clients: Clients;
  regions: Regions;
}

export function createClientQuotas(deps: ClientQuotasDeps) {
  const { db, quota } = deps;

  const figures = async (clientId: number, regionId: number, kinds: Kind[]): Promise<Figures> =>
    toQuotaFields(await quota.figures(db, { clientId, regionId }, kinds));

  const global = async (clientId: number): Promise<Figures> => {
    await deps.clients.require(clientId);
    return figures(clientId, globalRegion, globalKinds);
  };

  const regional = async (clientId: number, regionId: number): Promise<Figures> => {
    await deps.clients.require(clientId);
    return { region_id: regionId, ...(await figures(clientId, regionId, regionalKinds)) };
  };

  /** A regional quota without a region, a global quota with one, or a region that does not exist. */
  const errorsOf = (body: ValidFields<UpdateClientQuotas>): FieldError[] => {
    const { region_id: regionId } = body;
    const isUnknown = regionId !== undefined && !deps.regions.get(regionId);
    const unknown = isUnknown ? [{ path: 'region_id', message: `region ${regionId} not found` }] : [];
    return [...unknown, ...misplacedLimits(body)];
  };

  return {
    global,
    regional,

    /** For an invalid body. */
    bodyErrors: (body: ValidFields<UpdateClientQuotas>, isInvalid: IsInvalid): FieldError[] =>
      isInvalid('region_id') ? [] : errorsOf(body),

    async all(clientId: number): Promise<{ global_quotas: Figures; regional_quotas: Figures[] }> {
      const regions = deps.regions.all();
      return {
        global_quotas: await global(clientId),
        regional_quotas: await Promise.all(regions.map((region) => regional(clientId, region.id))),
      };
    },

    /** A limit below the usage is allowed: it only prevents growth. Returns the new figures. */
    async update(context: RequestContext, clientId: number, body: UpdateClientQuotas): Promise<Figures> {
      const { region_id: regionId, ...limits } = body;
      await deps.clients.require(clientId);
      requireNoErrors(errorsOf(body));
      const byKind = Object.fromEntries(Object.entries(limits).map(([name, limit]) => [kindOf(name), limit]));
      const scope = { clientId, regionId: regionId ?? globalRegion };
      await deps.idempotency.auditedTransaction(db, context, async (tx, act) => {
        act.regionId = regionId ?? null;
        await quota.setLimits(tx, scope, byKind);
      });
      return regionId === undefined ? global(clientId) : regional(clientId, regionId);
    },
  };
}

function kindOf(limitName: string): string {
  return limitName.replace(/_limit$/, '');
}

/** The response of `auditQuotas`. */
export function toDrifts(drifts: Drift[]): Collection<QuotaDrift> {
  const results = drifts.map(({ clientId, regionId, kind, counted, inRows }) => ({
    client_id: clientId,
    region_id: regionId === globalRegion ? null : regionId,
    kind,
    counted: Number(counted),
    in_use: Number(inRows),
  }));
  return { count: results.length, results };
}

/** Regional quotas without a region, and global quotas with one. */
function misplacedLimits({ region_id: regionId, ...limits }: ValidFields<UpdateClientQuotas>): FieldError[] {
  const allowed: readonly string[] = regionId === undefined ? globalKinds : regionalKinds;
  const message = regionId === undefined ? 'is a regional quota; send region_id' : 'is a global quota; omit region_id';
  const misplaced = Object.keys(limits).filter((name) => !allowed.includes(kindOf(name)));
  return misplaced.map((path) => ({ path, message }));
}
