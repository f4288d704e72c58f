import { ClientError } from '../../errors/catalogue.ts';
import type { QuotaRequest } from '../../resources/quota-requests/schema.ts';
import type { Decision } from '../../resources/quota-requests/service.ts';
import type { Settings } from '../settings.ts';
import { command, type Command } from '../command-line.ts';
import { UsageError } from '../usage-error.ts';
import { idNumber, print, printTable, withServices } from './with-services.ts';

const maxReason = 1000;

const list = command({
  name: 'quota requests list',
  summary: 'List pending quota requests of clients',
  options: { all: { type: 'boolean', default: false, description: 'also list decided requests' } },
  run: (settings, { all }) =>
    withServices(settings, async ({ quotaRequests }) => {
      const requests = await quotaRequests.listAll(all ? undefined : ['in progress']);
      if (requests.length === 0) return print(all ? 'No quota requests.' : 'No pending quota requests.');
      const head = ['id', 'client', 'status', 'created', 'region', 'requested', 'description'];
      printTable([head, ...requests.flatMap(rowsOf)]);
    }),
});

const approve = command({
  name: 'quota requests approve',
  operands: 'ID',
  summary: 'Approve a request: set the limits and notify the client',
  options: { reason: { type: 'string', value: 'TEXT', description: 'a message to the client' } },
  run: (settings, { reason }, [id = '']) => decide(settings, id, { approve: true, reason: reasonOf(reason) }),
});

const decline = command({
  name: 'quota requests decline',
  operands: 'ID',
  summary: 'Decline a request and notify the client',
  options: { reason: { type: 'string', value: 'TEXT', required: true, description: 'a message to the client' } },
  run: (settings, { reason }, [id = '']) => decide(settings, id, { approve: false, reason: reasonOf(reason) }),
});

export const quotaRequestCommands: Command[] = [list, approve, decline];

async function decide(settings: Settings, id: string, decision: Decision): Promise<void> {
  const number = idNumber('ID', id);
  await withServices(settings, async ({ quotaRequests }) => {
    const request = await quotaRequests.decideByCommand(number, decision).catch((error: unknown) => {
      if (!(error instanceof ClientError)) throw error;
      const errors = error.errors.map(({ path, message }) => `${path} ${message}`);
      throw new Error([error.message, ...errors].join('; '), { cause: error });
    });
    print(`quota request ${request.id} of client ${request.client_id} ${decision.approve ? 'approved' : 'declined'}`);
  });
}

function reasonOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  if (text.trim() === '' || text.length > maxReason) {
    throw new UsageError(`--reason must have 1 to ${maxReason} characters`);
  }
  return text;
}

/** One row for each region. */
function rowsOf({ id, client_id, status, created_at, requested_limits, description }: QuotaRequest): unknown[][] {
  const { global_limits = {}, regional_limits = [] } = requested_limits;
  const scopes = [
    ...(Object.keys(global_limits).length > 0 ? [{ region: 'global', limits: global_limits }] : []),
    ...regional_limits.map(({ region_id, ...limits }) => ({ region: String(region_id), limits })),
  ];
  return scopes.map(({ region, limits }) => {
    const requested = Object.entries(limits).map(([name, limit]) => `${name.replace(/_limit$/, '')}=${limit}`);
    return [id, client_id, status, created_at, region, requested.join(' '), JSON.stringify(description)];
  });
}
