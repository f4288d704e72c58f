/** The operations of file shares. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { operationsOf } from '../../http/operations.ts';
import { Page, TaskIds } from '../../http/shapes.ts';
import { sendPage } from '../../http/streamed-list.ts';
import { metadataOperations } from '../../tags/routes.ts';
import { errorsOfTagPatch } from '../../tags/tags.ts';
import {
  AccessRule,
  AccessRuleCollection,
  CheckFileShareLimits,
  CreateAccessRule,
  CreateFileShare,
  ExtendFileShare,
  FileShare,
  FileShareCollection,
  FileShareRequiredQuota,
  FileShareUsageCollection,
  ListFileShares,
  ListFileShareUsage,
  UpdateFileShare,
} from './schema.ts';
import type { FileShares } from './service.ts';

const tag = {
  name: 'File shares',
  description:
    'NFS shares. A share has a size in GiB and a `connection_point` (`host:/path`) that clients mount once `status` is ' +
    '`available`. Access rules decide which networks may mount a share, and whether read-only.',
};
const file_share_id = IdOf('the file share');
const operation = operationsOf(tag, { file_share_id, access_rule_id: IdOf('the access rule') });
const all = '/cloud/v1/file_shares/:project_id/:region_id';
const one = `${all}/:file_share_id`;

export const fileShareOperations = ({ fileShares }: { fileShares: FileShares }) => [
  operation('POST', all, {
    id: 'createFileShare',
    summary: 'Create a file share',
    access: projectMember,
    body: CreateFileShare,
    bodyErrors: fileShares.bodyErrors,
    response: TaskIds,
    handle: ({ by, scope, body }) => fileShares.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listFileShares',
    summary: 'List file shares',
    description: 'The oldest share comes first.',
    access: projectReader,
    query: ListFileShares,
    response: FileShareCollection,
    handle: async ({ scope, query }, reply) => sendPage(reply, await fileShares.list(scope, query)),
  }),
  operation('GET', one, {
    id: 'getFileShare',
    summary: 'Get a file share',
    access: projectReader,
    response: FileShare,
    handle: ({ scope, params }) => fileShares.get(scope, params.file_share_id),
  }),
  operation('GET', '/cloudyard/v1/file_shares/:project_id/:region_id/usage', {
    id: 'listFileShareUsage',
    summary: 'List the used space of file shares',
    description:
      'The worker measures shares every minute. Shares without a measurement are omitted: those of a simulated driver, of ' +
      'a host without size limits, and new ones.',
    access: projectReader,
    query: ListFileShareUsage,
    response: FileShareUsageCollection,
    handle: ({ scope, query }) => fileShares.usage(scope, query),
  }),
  operation('PATCH', '/cloud/v3/file_shares/:project_id/:region_id/:file_share_id', {
    id: 'updateFileShare',
    summary: 'Update a file share',
    description:
      'Changes the name, tags and settings that the body contains. A larger `size` beside them is ignored: clients that ' +
      'send every changed field extend the share with their next request.',
    access: projectMember,
    body: UpdateFileShare,
    bodyErrors: errorsOfTagPatch,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => fileShares.update(by, scope, params.file_share_id, body),
  }),
  operation('PATCH', one, {
    id: 'updateFileShareV1',
    summary: 'Update a file share (v1)',
    description: 'Returns the file share instead of a task. Use v3.',
    deprecated: true,
    access: projectMember,
    body: UpdateFileShare,
    bodyErrors: errorsOfTagPatch,
    response: FileShare,
    handle: ({ by, scope, params, body }) => fileShares.updateV1(by, scope, params.file_share_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteFileShare',
    summary: 'Delete a file share',
    description: 'Deletes the share with its data and access rules.',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => fileShares.delete(by, scope, params.file_share_id),
  }),
  operation('POST', `${one}/extend`, {
    id: 'extendFileShare',
    summary: 'Extend a file share',
    description: 'Clients see the new size without mounting again. A share cannot shrink.',
    access: projectMember,
    body: ExtendFileShare,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => fileShares.extend(by, scope, params.file_share_id, body.size),
  }),
  operation('POST', `${one}/access_rule`, {
    id: 'createFileShareAccessRule',
    summary: 'Create an access rule of a file share',
    description:
      'An access rule allows the hosts of a network to mount the share. Without access rules no host can mount it.',
    access: projectMember,
    body: CreateAccessRule,
    bodyErrors: fileShares.errorsOfAccessRule,
    response: AccessRule,
    handle: ({ by, scope, params, body }) => fileShares.createAccessRule(by, scope, params.file_share_id, body),
  }),
  operation('GET', `${one}/access_rule`, {
    id: 'listFileShareAccessRules',
    summary: 'List the access rules of a file share',
    description: 'The oldest rule comes first.',
    access: projectReader,
    query: Page,
    response: AccessRuleCollection,
    handle: ({ scope, params, query }) => fileShares.listAccessRules(scope, params.file_share_id, query),
  }),
  operation('DELETE', `${one}/access_rule/:access_rule_id`, {
    id: 'deleteFileShareAccessRule',
    summary: 'Delete an access rule of a file share',
    access: projectMember,
    handle: ({ by, scope, params }) =>
      fileShares.deleteAccessRule(by, scope, params.file_share_id, params.access_rule_id),
  }),
  operation('POST', `${all}/check_limits`, {
    id: 'checkFileShareLimits',
    summary: 'Check the quota for a new file share',
    description:
      'Lists the quotas that a new share of this size would exceed; the response is empty if there are none.',
    access: projectReader,
    body: CheckFileShareLimits,
    response: FileShareRequiredQuota,
    handle: ({ scope, body }) => fileShares.checkLimits(scope, body.size),
  }),
  ...metadataOperations(fileShares, one, { tag, parameter: { file_share_id }, name: 'FileShare', noun: 'file share' }),
];
