/** Commands that look at the database or change it, and end: tokens, clients, quotas, migrations. */
import { mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { commandAction } from '../audit/audit.ts';
import { roles } from '../authz/actor.ts';
import type { Role } from '../authz/actor.ts';
import { systemClock, withZone } from '../platform/clock.ts';
import { violatedConstraint } from '../platform/db.ts';
import { addKey, keyIds, openKeyFile, useKey } from '../platform/encryption.ts';
import { createLogger } from '../platform/log.ts';
import type { Settings } from '../platform/settings.ts';
import { globalKinds, globalRegion, regionalKinds } from '../quota/kinds.ts';
import type { Kind } from '../quota/kinds.ts';
import { migrate, openDatabase } from './database.ts';
import { configurationFiles, createServices, readConfiguration } from './services.ts';
import type { Services } from './services.ts';
import { UsageError } from './usage-error.ts';

export async function migrateCommand(settings: Settings): Promise<void> {
  await withServices(settings, async () => print('The database is up to date.'));
}

export async function tokenCommand(settings: Settings, [action, ...args]: string[]): Promise<void> {
  if (action === 'create') {
    const asked = tokenOptions(args);
    return withServices(settings, (services) => createToken(services, asked));
  }
  if (action === 'list') return withServices(settings, listTokens);
  if (action === 'revoke') {
    const [which] = args;
    if (!which) throw new UsageError('name the token: cloudyard token revoke ID');
    return withServices(settings, (services) => revokeToken(services, which));
  }
  throw new UsageError('token create, token list or token revoke?');
}

export async function clientCommand(settings: Settings, [action, ...args]: string[]): Promise<void> {
  if (action === 'create') {
    const name = args.join(' ').trim();
    if (!name) throw new UsageError('name the client: cloudyard client create NAME');
    return withServices(settings, async ({ clients }) => {
      const { clientId, projectId } = await clients.create(name).catch((error: unknown) => {
        throw violatedConstraint(error) ? new Error(`there is a client ${name} already`) : error;
      });
      print(
        `client ${clientId} with project ${projectId}; a token for it: cloudyard token create --client ${clientId}`,
      );
    });
  }
  if (action === 'list') {
    return withServices(settings, async ({ clients }) => {
      for (const { id, name, operator, weight } of await clients.list()) {
        print([id, name, ...(operator ? ['operator'] : []), ...(weight === 1 ? [] : [`weight ${weight}`])].join('\t'));
      }
    });
  }
  if (action === 'weight') {
    const [id = '', weight = ''] = args;
    const clientId = wholeNumber('the client', id);
    if (!/^([1-9]\d?|100)$/.test(weight)) throw new UsageError('the weight is a whole number from 1 to 100');
    return withServices(settings, async ({ clients }) => {
      if (!(await clients.setWeight(clientId, Number(weight)))) throw new Error(`there is no client ${clientId}`);
      print('done');
    });
  }
  throw new UsageError('usage: cloudyard client create|list|weight');
}

export async function quotaCommand(settings: Settings, [action, ...args]: string[]): Promise<void> {
  if (action === 'set') return setQuota(settings, args);
  if (action === 'audit') return auditQuota(settings, args);
  throw new UsageError('quota set or quota audit?');
}

/** Exit code 1 when a counter differs from the rows and was not set right. */
async function auditQuota(settings: Settings, args: string[]): Promise<void> {
  const { repair } = parseArgs({ args, options: { repair: { type: 'boolean', default: false } } }).values;
  await withServices(settings, async ({ quotaAudit }) => {
    const drifts = await (repair ? quotaAudit.repair() : quotaAudit.find());
    if (drifts.length > 0) print(['client', 'region', 'kind', 'counted', 'in rows'].join('\t'));
    for (const { clientId, regionId, kind, counted, inRows } of drifts) {
      print([clientId, regionId === globalRegion ? 'global' : regionId, kind, counted, inRows].join('\t'));
    }
    if (drifts.length === 0) print('Every counter is what the rows say.');
    else if (repair) print('Repaired.');
    else throw new Error('counters differ from the rows; to set them right: cloudyard quota audit --repair');
  });
}

async function setQuota(settings: Settings, args: string[]): Promise<void> {
  const options = { client: { type: 'string', default: '1' }, region: { type: 'string', default: '1' } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const clientId = wholeNumber('--client', values.client);
  const regionId = wholeNumber('--region', values.region);
  const limits = positionals.map(limitOf);
  if (limits.length === 0) throw new UsageError('name a kind and its limit: cloudyard quota set sfs_count=10');
  await withServices(settings, async ({ db, audit, quota, clients, regions }) => {
    if (!(await clients.exists(clientId))) throw new Error(`there is no client ${clientId}`);
    if (!regions.get(regionId)) throw new Error(`there is no region ${regionId}`);
    await audit.transaction(db, commandAction('setQuota', clientId), async (tx) => {
      for (const [kind, limit] of limits) {
        const scope = { clientId, regionId: isGlobal(kind) ? globalRegion : regionId };
        await quota.setLimits(tx, scope, { [kind]: limit });
      }
    });
    print('done');
  });
}

/**
 * Keys that secrets are encrypted with. `--prepare` makes one that only decrypts, so that every host has it before any
 * encrypts with it; `--use` then takes it. Without either both are done at once, which is right for one key file.
 */
export async function secretsCommand(settings: Settings, [action, ...args]: string[]): Promise<void> {
  if (action !== 'rotate-key') throw new UsageError('secrets rotate-key?');
  const options = { prepare: { type: 'boolean', default: false }, use: { type: 'string' } } as const;
  const { prepare, use } = parseArgs({ args, options }).values;
  if (prepare && use !== undefined) throw new UsageError('--prepare or --use, not both');
  await withServices(settings, async ({ db, audit, reencrypt }) => {
    const act = { ...commandAction(prepare ? 'prepareKey' : 'rotateKey'), always: true };
    const id = await audit.transaction(db, act, async (tx, act) => {
      await tx.$client.query('select pg_advisory_xact_lock($1)', [keyRotation]);
      const id = use ?? addKey(settings.keyFile);
      const encrypts = keyIds(settings.keyFile)[0];
      if (!prepare) useKey(settings.keyFile, id);
      act.changes = [{ table: 'secret.keys', id, before: { encrypts }, after: { encrypts: prepare ? encrypts : id } }];
      return id;
    });
    if (prepare) return print(`${id} is in ${settings.keyFile}; copy the file to all hosts, then: --use ${id}`);
    const count = await reencrypt().catch((error: Error) => {
      const message = `${id} encrypts from now on, but not all could be encrypted anew: ${error.message}`;
      throw new Error(`${message}; keep the old keys, and repeat with --use ${id}`, { cause: error });
    });
    print(`${id} encrypts from now on; ${count} encrypted anew`);
    const old = keyIds(settings.keyFile).slice(1);
    if (old.length > 0) print(`of no more use once every host has the file: ${old.join(', ')}`);
  });
}

/** Advisory lock: two rotations of one database come one after the other. */
const keyRotation = 0x636c6f75_6b;

function tokenOptions(args: string[]) {
  const options = {
    client: { type: 'string', default: '1' },
    role: { type: 'string', default: 'member' },
    project: { type: 'string', multiple: true },
    expires: { type: 'string' },
    name: { type: 'string', default: '' },
  } as const;
  const { values } = parseArgs({ args, options });
  const role = values.role === 'read-only' ? 'reader' : values.role;
  if (!(roles as readonly string[]).includes(role)) throw new UsageError(`--role is one of ${roles.join(', ')}`);
  return {
    clientId: wholeNumber('--client', values.client),
    role: role as Role,
    projectIds: values.project?.map((text) => wholeNumber('--project', text)) ?? null,
    expiresAt: values.expires === undefined ? null : expiry(values.expires, systemClock.now()),
    name: values.name,
  };
}

async function createToken(services: Services, asked: ReturnType<typeof tokenOptions>): Promise<void> {
  const { clientId, projectIds } = asked;
  if (!(await services.clients.exists(clientId))) {
    throw new Error(`there is no client ${clientId}; make one: cloudyard client create NAME`);
  }
  for (const id of projectIds ?? []) {
    if ((await services.projects.clientOf(id)) !== clientId) throw new Error(`client ${clientId} has no project ${id}`);
  }
  const { text } = await services.tokens.create(asked);
  print(text);
}

async function listTokens(services: Services): Promise<void> {
  print(['id', 'key', 'client', 'role', 'projects', 'expires', 'revoked', 'name'].join('\t'));
  for (const token of await services.tokens.list()) {
    const { id, keyId, clientId, role, projectIds, expiresAt, revokedAt, name } = token;
    const fields = [id, keyId, clientId, role, projectIds?.join(',') ?? 'all', withZone(expiresAt) ?? 'never'];
    print([...fields, withZone(revokedAt) ?? 'no', name].join('\t'));
  }
}

/** Takes the number, the part before the `$`, or the whole token. */
async function revokeToken(services: Services, which: string): Promise<void> {
  const known = await services.tokens.revoke(which.split('$')[0]!);
  if (!known) throw new Error('there is no such token');
  print('revoked');
}

async function withServices(settings: Settings, work: (services: Services) => Promise<void>): Promise<void> {
  mkdirSync(settings.dataDir, { recursive: true });
  const log = createLogger({ level: 'error', pretty: settings.logFormat === 'pretty' });
  const configuration = readConfiguration(configurationFiles(settings), log);
  const database = await openDatabase(settings, log);
  let services: Services | undefined;
  try {
    await migrate(database.connection);
    services = await createServices({
      db: database.connect('cloudyard command', 2),
      clock: systemClock,
      log,
      configuration,
      keyring: openKeyFile(settings.keyFile),
    });
    await services.clients.bootstrap();
    await work(services);
  } finally {
    services?.caches.stop();
    await database.close();
  }
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`${name} is a whole number`);
  return Number(text);
}

function limitOf(text: string): [Kind, number | null] {
  const [kind = '', limit = ''] = text.split('=');
  if (![...regionalKinds, ...globalKinds].includes(kind as Kind)) throw new UsageError(`${kind} is no kind of quota`);
  return [kind as Kind, limit === 'default' ? null : wholeNumber(kind, limit)];
}

function isGlobal(kind: Kind): boolean {
  return (globalKinds as string[]).includes(kind);
}

const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 };

/** `30d`, `12h`, `10m`, `5s`, or a date. */
function expiry(text: string, now: Date): Date {
  const span = /^(\d{1,6})([dhms])$/.exec(text);
  const date = span ? new Date(now.getTime() + Number(span[1]) * units[span[2] as keyof typeof units]) : new Date(text);
  if (Number.isNaN(date.getTime())) throw new UsageError(`--expires is a span such as 30d or a date, not ${text}`);
  return date;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
