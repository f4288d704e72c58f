import type { Settings } from '../settings.ts';
import { globalKinds, globalRegion, type Kind, meaningOfKind, regionalKinds } from '../../quota/kinds.ts';
import { closest } from '../closest.ts';
import { command, type Command } from '../command-line.ts';
import { program } from '../program.ts';
import type { Services } from '../services.ts';
import { UsageError } from '../usage-error.ts';
import { quotaRequestCommands } from './quota-requests.ts';
import { idNumber, print, printTable, requireClient, wholeNumber, withServices } from './with-services.ts';

const kinds: Kind[] = [...regionalKinds, ...globalKinds];

const scopeOptions = {
  client: { type: 'string', default: '1', value: 'N', description: 'the client' },
  region: { type: 'string', default: '1', value: 'N', description: 'the region; global kinds ignore it' },
} as const;

const list = command({
  name: 'quota list',
  summary: 'List the limits and the usage of a client in a region',
  options: scopeOptions,
  async run(settings, values) {
    await withScope(settings, values, kinds, (services, scope) => printQuotas(services, scope, kinds));
  },
});

const set = command({
  name: 'quota set',
  operands: 'KIND=LIMIT...',
  summary: 'Set limits of a client; "default" as LIMIT restores the default',
  options: scopeOptions,
  async run(settings, values, operands) {
    const limits = operands.map(limitOf);
    const changed = limits.map(([kind]) => kind);
    const repeated = changed.find((kind, i) => changed.indexOf(kind) < i);
    if (repeated !== undefined) throw new UsageError(`${repeated} is set twice`);
    await withScope(settings, values, changed, async (services, scope) => {
      const { commandAction } = await import('../../audit/audit.ts');
      const { db, audit, quota } = services;
      await audit.transaction(db, commandAction('setQuota', scope.clientId), async (tx) => {
        for (const [kind, limit] of limits) {
          const place = isGlobalKind(kind) ? { ...scope, regionId: globalRegion } : scope;
          await quota.setLimits(tx, place, { [kind]: limit });
        }
      });
      await printQuotas(services, scope, changed);
    });
  },
});

/** Exits with 1 when a counter differs from the rows and was not repaired. */
const audit = command({
  name: 'quota audit',
  summary: 'Compare all counters with the rows that they count',
  options: {
    repair: { type: 'boolean', default: false, description: 'correct the counters that differ' },
  },
  async run(settings, { repair }) {
    await withServices(settings, async ({ quotaAudit }) => {
      const drifts = await (repair ? quotaAudit.repair() : quotaAudit.find());
      if (drifts.length === 0) return print('All counters match the rows.');
      const rows = drifts.map(({ clientId, regionId, kind, counted, inRows }) => [
        ...[clientId, regionName(regionId), kind, counted, inRows],
      ]);
      printTable([['client', 'region', 'kind', 'counted', 'in rows'], ...rows]);
      if (repair) return print(`Counters repaired: ${drifts.length}.`);
      throw new Error(
        `${drifts.length} counters differ from the rows; to repair them: ${program} quota audit --repair`,
      );
    });
  },
});

export const quotaCommands: Command[] = [list, set, audit, ...quotaRequestCommands];

interface Scope {
  clientId: number;
  regionId: number;
}

/** @throws Error if the client does not exist, or the region, unless all kinds are global */
async function withScope(
  settings: Settings,
  { client, region }: { client: string; region: string },
  ofKinds: Kind[],
  work: (services: Services, scope: Scope) => Promise<void>,
): Promise<void> {
  const scope = { clientId: idNumber('--client', client), regionId: idNumber('--region', region) };
  await withServices(settings, async (services) => {
    await requireClient(services, scope.clientId);
    if (!ofKinds.every(isGlobalKind) && !services.regions.get(scope.regionId)) {
      const known = services.regions.all().map(({ id }) => id);
      throw new Error(`region ${scope.regionId} not found; the regions file has ${known.join(', ')}`);
    }
    await work(services, scope);
  });
}

async function printQuotas({ db, quota }: Services, { clientId, regionId }: Scope, shown: Kind[]): Promise<void> {
  const rows: unknown[][] = [];
  for (const isGlobal of [false, true]) {
    const scope = { clientId, regionId: isGlobal ? globalRegion : regionId };
    const ofScope = shown.filter((kind) => isGlobalKind(kind) === isGlobal);
    for (const { kind, limit, usage } of await quota.figures(db, scope, ofScope)) {
      rows.push([clientId, regionName(scope.regionId), kind, limit, usage, meaningOfKind[kind]]);
    }
  }
  printTable([['client', 'region', 'kind', 'limit', 'usage', 'counts'], ...rows]);
}

function isGlobalKind(kind: Kind): boolean {
  return (globalKinds as Kind[]).includes(kind);
}

function regionName(regionId: number): string {
  return regionId === globalRegion ? 'global' : String(regionId);
}

function limitOf(text: string): [Kind, number | null] {
  const [, kind = '', limit] = /^([^=]*)(?:=(.*))?$/s.exec(text)!;
  if (!(kinds as string[]).includes(kind)) {
    const found = closest(kind, kinds);
    const hint = found.length > 0 ? `did you mean ${found.join(', ')}? For all kinds` : 'list them with';
    throw new UsageError(`${kind} is not a kind of quota; ${hint}: ${program} quota list`);
  }
  if (limit === undefined) throw new UsageError(`${kind} has no limit; write ${kind}=10 or ${kind}=default`);
  return [kind as Kind, limit === 'default' ? null : wholeNumber(`the limit of ${kind}`, limit)];
}
