/**
 * Calls every operation of the OpenAPI document with tokens that have no access. The operations come from the document,
 * IDs and bodies from the schemas, and the expected answers from the declared access. A new operation needs no line here,
 * and its resource needs no line in victim.ts, unless the example of its request cannot be created: then the test fails and
 * names the path parameter.
 */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { roles } from '../../src/authz/actor.ts';
import type { Access } from '../../src/authz/access.ts';
import { createApp, type AppOptions } from '../../src/http/create-app.ts';
import { createMetrics } from '../../src/platform/metrics.ts';
import type { Routes } from '../../src/http/app.ts';
import { systemRoutes } from '../../src/http/system.ts';
import { declaredApi } from '../../src/main/openapi-document.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { resourceRoutes } from '../../src/resources/list.ts';
import { useCloudyard, type Answer } from '../harness.ts';
import { dereferenced } from '../openapi.ts';
import { sample, type Schema } from './samples.ts';
import { createVictim, secretText, type Victim } from './victim.ts';

/** Operations of the registry protocols, which have separate credentials. */
const registryOperations = ['getRegistryToken', 'createRegistryToken', 'receiveRegistryEvents'];
/** Operations that require an API key. */
const apiKeyOperations = ['authorizeContainer', 'authorizeContainerByPath'];
/** Operations whose body contains the token. */
const signInOperations = ['createSession'];
/** Without an OpenID Connect provider these are 404. */
const openIdOperations = ['startSignIn', 'finishSignIn', 'startDeviceSignIn', 'finishDeviceSignIn'];
/** Its operations need the cookie of a session. */
const sessionPath = '/cloudyard/v1/session';
/** Operations that need no token. Review every addition. */
const publicOperations = [
  ...['getIndex', 'getHealth', 'getReadiness', 'getDriverHealth', 'getMetrics', 'getOpenApi', 'getSignInMethods'],
  ...[...registryOperations, ...apiKeyOperations, ...signInOperations, ...openIdOperations],
];
/** Pages without an operation: the API reference. */
const pages = /^\/docs(\/|$)/;

interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: Schema;
}

interface Described {
  operationId: string;
  security?: unknown[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

interface Route {
  method: string;
  path: string;
  described: Described;
  rule: Access;
}

const api = await declaredApi();
const document = dereferenced(api.document) as { paths: Record<string, Record<string, Described>> };
const accessById = new Map(api.operations.map(({ operationId, access }) => [operationId, access]));
const everyRoute: Route[] = Object.entries(document.paths).flatMap(([path, operations]) =>
  Object.entries(operations).map(([method, described]) => ({
    method: method.toUpperCase(),
    path,
    described,
    rule: accessById.get(described.operationId)!,
  })),
);
const guarded = everyRoute.filter(({ rule }) => rule?.reach !== 'public');
const named = (routes: Route[]) => routes.map((route) => [`${route.method} ${route.path}`, route] as const);
const has = ({ path }: Route, ...names: string[]) => names.some((name) => path.includes(`{${name}}`));

/** Development mode adds routes. */
const cloud = useCloudyard({ development: true });
/** The client whose resources are attacked. */
let victim: Victim;
let stranger: Victim;
const places = ['client_id', 'project_id', 'region_id'];
/** Path parameters whose values are small numbers, which occur in many responses. */
const smallNumbers = ['policy_id', 'token_id', 'fault_id', 'user_action_id'];
/** Values that belong to the victim, or to the operator, by path parameter. */
const owned = new Map([['host_name', 'host-of-the-operator']]);

beforeAll(async () => {
  victim = await createVictim(cloud, owned);
  stranger = await cloud.newClient();
  const { clientId, projectId } = victim;
  owned.set('client_id', String(clientId)).set('project_id', String(projectId)).set('region_id', '1');
  const names = new Set(guarded.flatMap(({ path }) => [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)));
  for (const name of names) if (!owned.has(name)) await findOrCreate(name);
});

async function findOrCreate(parameter: string): Promise<void> {
  if (await findOwned(parameter)) return;
  const attempt = await createOwned(parameter);
  if (await findOwned(parameter)) return;
  throw new Error(`the victim owns nothing for the path parameter ${parameter}: create it in victim.ts (${attempt})`);
}

/** Creates a resource of the victim with the example of the request. Returns the outcome. */
async function createOwned(parameter: string): Promise<string> {
  const isItem = ({ path }: Route) => path.endsWith(`/{${parameter}}`);
  const lists = guarded.filter(isItem).map(({ path }) => path.slice(0, path.lastIndexOf('/')));
  const create = guarded.find(({ method, path }) => method === 'POST' && lists.includes(path));
  if (!create) return 'no operation creates it';
  const { token } = victim;
  const answer = await tryRoute(create, token, {}, { ...(bodyOf(create) as object), name: secretText });
  if (answer.body?.tasks) await cloud.ended(answer, { token });
  return `${create.described.operationId}: ${answer.status} ${JSON.stringify(answer.body)}`;
}

/** Finds the value of a path parameter: `file_share_id` is the ID of a row of the victim in `file_shares`. */
async function findOwned(parameter: string): Promise<boolean> {
  const { rows } = await cloud.db.$client.query<{ name: string; columns: string[] }>(
    `select table_name as name, array_agg(column_name::text) as columns from information_schema.columns
     where table_schema = 'public' and table_name like $1 group by 1 order by length(table_name)`,
    [`%${parameter.replace(/_id$/, '').replace(/y$/, 'ie')}s`],
  );
  for (const { name, columns } of rows.filter(({ columns }) => columns.includes('id'))) {
    const column = columns.includes('client_id') ? 'client_id' : columns.includes('project_id') ? 'project_id' : null;
    const mine = column ? `where ${column} = ${owned.get(column)!}` : '';
    const found = await cloud.db.$client.query<{ id: string }>(`select id::text from "${name}" ${mine} limit 1`);
    if (!found.rows[0]) continue;
    owned.set(parameter, found.rows[0].id);
    return true;
  }
  return false;
}

/** A request that is valid except for its caller. `instead` overrides path parameters. */
function tryRoute(
  route: Route,
  token: string | null,
  instead: Record<string, string> = {},
  body = bodyOf(route),
): Promise<Answer> {
  const parameters = route.described.parameters ?? [];
  const url = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const schema = parameters.find((parameter) => parameter.in === 'path' && parameter.name === name)?.schema ?? {};
    return encodeURIComponent(instead[name] ?? owned.get(name) ?? String(sample(schema, name, owned)));
  });
  const query = new URLSearchParams();
  for (const { in: where, name, required, schema } of parameters) {
    if (where === 'query' && required) query.set(name, String(sample(schema, name, owned)));
  }
  return cloud.request(route.method, query.size > 0 ? `${url}?${query}` : url, body, { token });
}

/** A stream of events does not end, so its headers are requested. */
function withoutStream(route: Route): Route {
  return route.described.operationId === 'streamEvents' ? { ...route, method: 'HEAD' } : route;
}

function bodyOf({ described }: Route): unknown {
  const schema = described.requestBody?.content['application/json']?.schema;
  return schema && sample(schema, '', owned);
}

describe('the policy', () => {
  it('has an entry for every operation, each with a unique operationId', () => {
    const operations = everyRoute.map(({ described }) => described.operationId);
    expect([...operations].sort()).toEqual([...accessById.keys()].sort());
    expect(new Set(operations).size).toBe(operations.length);
  });

  it('is written to policy.txt', () => {
    const lines = readFileSync('policy.txt', 'utf8').trimEnd().split('\n').slice(1);
    const listed = lines.map((line) => line.split(/ {2,}/));
    const declared = everyRoute.map(({ method, path, described, rule }) => [
      ...[described.operationId, method, path, rule.reach],
      rule.reach === 'public' ? '-' : rule.role,
    ]);
    expect(listed.map((line) => line.join(' ')).sort()).toEqual(declared.map((line) => line.join(' ')).sort());
  });

  it('leaves exactly the listed operations public, and the document describes them as public', async () => {
    const open = everyRoute.filter(({ rule }) => rule.reach === 'public');
    expect(open.map(({ described }) => described.operationId).sort()).toEqual([...publicOperations].sort());
    for (const route of everyRoute) {
      expect([route.path, route.described.security !== undefined]).toEqual([route.path, route.rule.reach === 'public']);
    }
    for (const route of open) {
      const { status } = await tryRoute(route, null);
      const { operationId } = route.described;
      const answers = registryOperations.includes(operationId)
        ? [400, 401]
        : [...apiKeyOperations, ...signInOperations].includes(operationId)
          ? [401]
          : [openIdOperations.includes(operationId) ? 404 : 200];
      expect(answers).toContain(status);
    }
  });

  it('covers every route: only the reference page is missing from the document', async () => {
    const seen: { url: string; operation: unknown }[] = [];
    const spy: Routes = (app) => {
      app.addHook('onRoute', ({ url, schema }) => void seen.push({ url, operation: schema?.operationId }));
    };
    await appOf([spy, systemRoutes(unused as never), ...resourceRoutes(each as never)]);
    expect(seen.length).toBeGreaterThan(everyRoute.length);
    expect(seen.filter(({ url, operation }) => !pages.test(url) && !accessById.has(String(operation)))).toEqual([]);
  });

  it('refuses to start a server with a route that declares no access', async () => {
    const route: Routes = (app) => {
      app.get('/cloud/v1/secrets', { schema: { operationId: 'listSecretsOfAll' } }, async () => 'secret');
    };
    await expect(appOf([route])).rejects.toThrow('GET /cloud/v1/secrets declares no access');
  });
});

const unused = new Proxy({}, { get: () => undefined });
const each = new Proxy({}, { get: () => unused });

async function appOf(routes: Routes[]): Promise<void> {
  const given = { log: silentLogger, metrics: createMetrics(), routes };
  const app = await createApp(given as unknown as AppOptions);
  await app.ready();
  await app.close();
}

describe('without a token', () => {
  it.each(named(guarded))('%s returns 401', async (_name, route) => {
    const answer = await tryRoute(route, null);
    expect(answer).toMatchObject({ status: 401, body: { exception_class: 'Unauthenticated' } });
    if (route.method === 'GET') expect((await tryRoute({ ...route, method: 'HEAD' }, null)).status).toBe(401);
  });
});

describe('with an invalid token', () => {
  it.each(named(guarded))('%s returns 401', async (_name, route) => {
    const [key] = victim.token.split('$');
    for (const token of ['x', 'x$x', `${key}$x`, `${key}$`]) {
      expect(await tryRoute(route, token)).toMatchObject({ status: 401, body: { exception_class: 'Unauthenticated' } });
    }
  });
});

describe('with a token of another client', () => {
  const refusal = ({ rule }: Route) => (rule.reach === 'operator' ? 403 : 404);
  const scoped = guarded.filter((route) => has(route, 'project_id', 'client_id'));

  it.each(named(scoped))('%s is refused', async (_name, route) => {
    const answer = await tryRoute(route, stranger.token);
    expect([answer.status, leaks(answer)]).toEqual([refusal(route), []]);
  });

  it.each(named(guarded))(
    '%s under its own project neither shows nor accepts resources of the first client',
    async (_name, route) => {
      const mine = { project_id: String(stranger.projectId), client_id: String(stranger.clientId) };
      const answer = await tryRoute(withoutStream(route), stranger.token, mine);
      expect(leaks(answer)).toEqual([]);
      const ids = [...owned].filter(([name]) => !(name in mine) && name !== 'region_id');
      if (ids.some(([name]) => has(route, name))) expect(answer.status).toBe(refusal(route));
      const body = JSON.stringify(bodyOf(route)) ?? '';
      if (ids.some(([name, id]) => !smallNumbers.includes(name) && body.includes(id)))
        expect([400, 403, 404]).toContain(answer.status);
    },
  );

  /** Values of the victim in a response. Errors may repeat ids of the request. */
  function leaks({ status, body }: Answer): string[] {
    if (status >= 400) return JSON.stringify(body).includes(secretText) ? [secretText] : [];
    const ids = [...owned].filter(([name]) => ![...places, ...smallNumbers].includes(name)).map(([, id]) => id);
    return [secretText, ...ids].filter((mark) => JSON.stringify(body).includes(mark));
  }
});

describe('with a token whose role is too low', () => {
  const above = guarded.flatMap((route) =>
    roles
      .slice(0, roles.indexOf(route.rule.role))
      .map((role) => [role, `${route.method} ${route.path}`, route] as const),
  );
  it.each(above)('%s: %s returns 403', async (role, _name, route) => {
    const answer = await tryRoute(route, await cloud.newToken(victim.clientId, role));
    expect(answer).toMatchObject({ status: 403, body: { exception_class: 'Forbidden' } });
  });
});

describe('with a reader token', () => {
  it.each(named(guarded.filter(({ rule, path }) => rule.role === 'reader' && path !== sessionPath)))(
    '%s is allowed',
    async (_name, route) => {
      const answer = await tryRoute(withoutStream(route), await cloud.newToken(victim.clientId, 'reader'));
      expect([200, 404]).toContain(answer.status);
      if (answer.status === 404) expect(has(route, 'project_id')).toBe(true);
    },
  );
});

describe('with a token without projects', () => {
  it.each(named(guarded.filter(({ rule }) => rule.reach === 'project')))('%s returns 403', async (_name, route) => {
    const answer = await tryRoute(route, await cloud.newToken(victim.clientId, 'admin', []));
    expect(answer).toMatchObject({ status: 403, body: { exception_class: 'Forbidden' } });
  });
});

describe('after all attempts', () => {
  it('the resources of the first client are unchanged', async () => {
    const { token, projectId } = victim;
    const { body } = await cloud.get(`/cloud/v1/file_shares/${projectId}/1`, { token });
    expect(body).toMatchObject({ count: 1, results: [{ name: secretText, status: 'available', size: 1 }] });
    const rules = await cloud.get(`/cloud/v1/file_shares/${projectId}/1/${body.results[0].id}/access_rule`, { token });
    expect(rules.body.count).toBe(1);
    expect((await cloud.get(`/cloud/v1/projects/${projectId}`, { token })).body.name).toBe(secretText);
  });
});
