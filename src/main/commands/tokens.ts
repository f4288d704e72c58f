import { type Role, roles } from '../../authz/actor.ts';
import { withZone } from '../../platform/clock.ts';
import { command, type Command } from '../command-line.ts';
import { program } from '../program.ts';
import { UsageError } from '../usage-error.ts';
import { dateForms, dateOf, errorOf } from './values.ts';
import { idNumber, print, printTable, requireClient, withServices } from './with-services.ts';

const create = command({
  name: 'token create',
  summary: 'Create a token and print it, once',
  options: {
    client: { type: 'string', default: '1', value: 'N', description: 'the client' },
    role: { type: 'string', default: 'member', value: roles.join('|'), description: 'the role of the token' },
    project: {
      type: 'string',
      multiple: true,
      value: 'N',
      description: 'a project that the token may use; repeat for more; omitted: all projects of the client',
    },
    expires: { type: 'string', value: 'WHEN', description: 'a duration (30d, 12h, 10m, 5s) or a date; omitted: never' },
    name: { type: 'string', value: 'TEXT', description: 'a name, shown by token list' },
  },
  async run(settings, { client, role, project, expires, name }) {
    const expiryAt = expires === undefined ? () => null : await expiryOf(expires);
    const token = {
      clientId: idNumber('--client', client),
      role: roleOf(role),
      projectIds: project?.map((text) => idNumber('--project', text)) ?? null,
      name: name === undefined ? '' : await nameOf(name),
    };
    await withServices(settings, async (services) => {
      await requireClient(services, token.clientId);
      for (const id of token.projectIds ?? []) {
        if ((await services.projects.clientOf(id)) === token.clientId) continue;
        throw new Error(`project ${id} of client ${token.clientId} not found`);
      }
      print((await services.tokens.create({ ...token, expiresAt: expiryAt(services.clock.now()) })).text);
    });
  },
});

const list = command({
  name: 'token list',
  summary: 'List tokens without their secrets',
  run: (settings) =>
    withServices(settings, async ({ tokens }) => {
      const rows = (await tokens.list()).map((token) => [
        ...[token.id, token.keyId, token.clientId, token.role, token.projectIds?.join(',') ?? 'all'],
        ...[withZone(token.expiresAt) ?? 'never', withZone(token.revokedAt) ?? 'no', token.name],
      ]);
      printTable([['id', 'key', 'client', 'role', 'projects', 'expires', 'revoked', 'name'], ...rows]);
    }),
});

const revoke = command({
  name: 'token revoke',
  operands: 'ID',
  summary: 'Revoke a token, given its id, the part before the $, or the whole token',
  async run(settings, _, [token = '']) {
    const idOrKey = token.split('$')[0]!;
    await withServices(settings, async ({ tokens }) => {
      if (!(await tokens.revoke(token))) {
        throw new Error(`token ${idOrKey} not found; list tokens with: ${program} token list`);
      }
      print(`token ${idOrKey} revoked; every server refuses it within a second`);
    });
  },
});

export const tokenCommands: Command[] = [create, list, revoke];

function roleOf(text: string): Role {
  const role = text === 'read-only' ? 'reader' : text;
  if ((roles as readonly string[]).includes(role)) return role as Role;
  throw new UsageError(`--role must be one of ${roles.join(', ')}, not ${JSON.stringify(text)}`);
}

const unitsMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 };

/** The expiry after a duration such as `30d`, or at a date. @throws UsageError, also if it is in the past */
async function expiryOf(text: string): Promise<(now: Date) => Date> {
  const [, number, unit] = /^(\d{1,6})([dhms])$/.exec(text) ?? [];
  const ms = unit === undefined ? null : Number(number) * unitsMs[unit as keyof typeof unitsMs];
  const date = ms === null ? await dateOf(text) : null;
  if (ms === null && date === null) {
    throw new UsageError(`--expires must be a duration such as 30d, or ${dateForms}, not ${JSON.stringify(text)}`);
  }
  return (now) => {
    const expiry = date ?? new Date(now.getTime() + ms!);
    if (expiry <= now) throw new UsageError(`--expires ${text} is in the past`);
    return expiry;
  };
}

/** @throws UsageError for a name that the API refuses */
async function nameOf(text: string): Promise<string> {
  const { CreateToken } = await import('../../resources/tokens/schema.ts');
  const error = await errorOf(text, CreateToken.properties.name);
  if (error === undefined) return text;
  throw new UsageError(`--name ${error}`);
}
