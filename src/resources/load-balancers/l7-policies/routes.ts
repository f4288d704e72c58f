/** The operations of L7 policies and their rules. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { IdOf } from '../../../http/path-parameters.ts';
import { operationsOf } from '../../../http/operations.ts';
import { Page, TaskIds } from '../../../http/shapes.ts';
import { sendInGroups } from '../../../http/streamed-list.ts';
import { errorsOfL7Policy, errorsOfL7Rule, errorsOfL7RuleUpdate } from '../body-errors.ts';
import { CreateL7Rule, L7Rule, L7RuleCollection, UpdateL7Rule } from './rules/schema.ts';
import { CreateL7Policy, l7Limits, L7Policy, L7PolicyCollection, UpdateL7Policy } from './schema.ts';
import type { L7Policies } from './service.ts';

/** With a comma after the thousands. `toLocaleString` would load the data of all languages, which takes 20 ms of each start. */
const count = (limit: number) => `${limit}`.replace(/\B(?=(\d{3})+$)/g, ',');

const tag = {
  name: 'Load balancer L7 policies',
  description:
    'Reject or redirect requests by host name, path, header, cookie or file type, before they reach the default pool of a ' +
    'listener. A request matches a policy if it matches all its rules; a policy without rules matches none. REJECT ' +
    'policies are evaluated first, then REDIRECT_TO_URL and REDIRECT_PREFIX, then REDIRECT_TO_POOL, each by position; the ' +
    'first match decides.\n\n' +
    `A listener can have ${count(l7Limits.policies)} policies and ${count(l7Limits.rules)} rules, of which ` +
    `${l7Limits.regexRules} can be of compare_type REGEX and ${l7Limits.containsRules} of CONTAINS; a policy can have ${l7Limits.rulesOfPolicy} rules. Changes of ` +
    'policies, rules and pools of a load balancer run one after the other in the order of the requests; other changes ' +
    'fail with 409 while a task changes the load balancer.',
};
const operation = operationsOf(tag, { l7policy_id: IdOf('the L7 policy'), l7rule_id: IdOf('the L7 rule') });
const all = '/cloud/v1/l7policies/:project_id/:region_id';
const one = `${all}/:l7policy_id`;

export const l7PolicyOperations = (policies: L7Policies) => [
  operation('POST', all, {
    id: 'createL7Policy',
    summary: 'Create an L7 policy',
    access: projectMember,
    body: CreateL7Policy,
    bodyErrors: errorsOfL7Policy,
    response: TaskIds,
    handle: ({ by, scope, body }) => policies.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listL7Policies',
    summary: 'List L7 policies',
    description: 'The oldest policy comes first.',
    access: projectReader,
    query: Page,
    response: L7PolicyCollection,
    handle: async ({ scope, query }, reply) => sendInGroups(reply, await policies.list(scope, query)),
  }),
  operation('GET', one, {
    id: 'getL7Policy',
    summary: 'Get an L7 policy',
    access: projectReader,
    response: L7Policy,
    handle: ({ scope, params }) => policies.get(scope, params.l7policy_id),
  }),
  operation('PATCH', one, {
    id: 'updateL7Policy',
    summary: 'Update an L7 policy',
    description: 'A new position moves the policies in between. Without a change no task starts.',
    access: projectMember,
    body: UpdateL7Policy,
    bodyErrors: errorsOfL7Policy,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => policies.update(by, scope, params.l7policy_id, body),
  }),
  operation('PUT', one, {
    id: 'replaceL7Policy',
    summary: 'Update an L7 policy with PUT',
    description: 'The same as PATCH, for older official clients.',
    deprecated: true,
    access: projectMember,
    body: UpdateL7Policy,
    bodyErrors: errorsOfL7Policy,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => policies.update(by, scope, params.l7policy_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteL7Policy',
    summary: 'Delete an L7 policy',
    description: 'Deletes the policy with its rules. Later policies move up.',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => policies.delete(by, scope, params.l7policy_id),
  }),
  ...ruleOperations(policies),
];

const rules = `${one}/rules`;
const rule = `${rules}/:l7rule_id`;

function ruleOperations(policies: L7Policies) {
  return [
    operation('POST', rules, {
      id: 'createL7Rule',
      summary: 'Create a rule of an L7 policy',
      access: projectMember,
      body: CreateL7Rule,
      bodyErrors: errorsOfL7Rule,
      response: TaskIds,
      handle: ({ by, scope, params, body }) => policies.createRule(by, scope, params.l7policy_id, body),
    }),
    operation('GET', rules, {
      id: 'listL7Rules',
      summary: 'List the rules of an L7 policy',
      description: 'The oldest rule comes first.',
      access: projectReader,
      query: Page,
      response: L7RuleCollection,
      handle: ({ scope, params, query }) => policies.listRules(scope, params.l7policy_id, query),
    }),
    operation('GET', rule, {
      id: 'getL7Rule',
      summary: 'Get a rule of an L7 policy',
      access: projectReader,
      response: L7Rule,
      handle: ({ scope, params }) => policies.getRule(scope, params.l7policy_id, params.l7rule_id),
    }),
    operation('PUT', rule, {
      id: 'updateL7Rule',
      summary: 'Update a rule of an L7 policy',
      description: 'Omitted fields are unchanged. Without a change no task starts.',
      access: projectMember,
      body: UpdateL7Rule,
      bodyErrors: errorsOfL7RuleUpdate,
      response: TaskIds,
      handle: ({ by, scope, params, body }) =>
        policies.updateRule(by, scope, params.l7policy_id, params.l7rule_id, body),
    }),
    operation('DELETE', rule, {
      id: 'deleteL7Rule',
      summary: 'Delete a rule of an L7 policy',
      access: projectMember,
      response: TaskIds,
      handle: ({ by, scope, params }) => policies.deleteRule(by, scope, params.l7policy_id, params.l7rule_id),
    }),
  ];
}
