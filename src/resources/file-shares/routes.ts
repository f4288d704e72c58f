/** The HTTP operations of file shares (docs/interface.md, "File shares"). */
import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../http/shapes.ts';
import { metadataRoutes } from '../../tags/routes.ts';
import {
  AccessRule,
  AccessRuleCollection,
  AccessRulePath,
  CreateAccessRule,
  CreateFileShare,
  ExtendFileShare,
  FileShare,
  FileShareCollection,
  FileSharePath,
  FileShareRequiredQuota,
  ListAccessRules,
  ListFileShares,
  UpdateFileShare,
} from './schema.ts';
import type { FileShares } from './service.ts';

const tags = ['File shares'];
const all = '/cloud/v1/file_shares/:project_id/:region_id';
const one = `${all}/:file_share_id`;
const nothing = { 204: Type.Null({ description: 'Done' }) };

export function fileShareRoutes(fileShares: FileShares): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string, deprecated = false) => ({
      operationId,
      summary,
      tags,
      ...(deprecated && { deprecated }),
    });

    app.post(
      all,
      {
        schema: {
          ...summarize('createFileShare', 'Create a file share'),
          params: ProjectRegion,
          body: CreateFileShare,
          response: { 200: TaskIds },
        },
      },
      (request) => fileShares.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listFileShares', 'List file shares, oldest first'),
          params: ProjectRegion,
          querystring: ListFileShares,
          response: { 200: FileShareCollection },
        },
      },
      (request) => fileShares.list(request.scope, request.query),
    );

    app.get(
      one,
      {
        schema: {
          ...summarize('getFileShare', 'Get a file share'),
          params: FileSharePath,
          response: { 200: FileShare },
        },
      },
      (request) => fileShares.get(request.scope, request.params.file_share_id),
    );

    app.patch(
      one.replace('/v1/', '/v3/'),
      {
        schema: {
          ...summarize('updateFileShare', 'Update a file share: name, tags, settings'),
          params: FileSharePath,
          body: UpdateFileShare,
          response: { 200: TaskIds },
        },
      },
      (request) => fileShares.update(request.by, request.scope, request.params.file_share_id, request.body),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateFileShareV1', 'Update a file share, answering the share', true),
          params: FileSharePath,
          body: UpdateFileShare,
          response: { 200: FileShare },
        },
      },
      (request) => fileShares.updateV1(request.by, request.scope, request.params.file_share_id, request.body),
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteFileShare', 'Delete a file share with its data'),
          params: FileSharePath,
          response: { 200: TaskIds },
        },
      },
      (request) => fileShares.delete(request.by, request.scope, request.params.file_share_id),
    );

    app.post(
      `${one}/extend`,
      {
        schema: {
          ...summarize('extendFileShare', 'Grow a file share'),
          params: FileSharePath,
          body: ExtendFileShare,
          response: { 200: TaskIds },
        },
      },
      (request) => fileShares.extend(request.by, request.scope, request.params.file_share_id, request.body.size),
    );

    app.post(
      `${one}/access_rule`,
      {
        schema: {
          ...summarize('createFileShareAccessRule', 'Let a network mount a file share'),
          params: FileSharePath,
          body: CreateAccessRule,
          response: { 200: AccessRule },
        },
      },
      (request) => fileShares.createAccessRule(request.by, request.scope, request.params.file_share_id, request.body),
    );

    app.get(
      `${one}/access_rule`,
      {
        schema: {
          ...summarize('listFileShareAccessRules', 'List the access rules of a file share, oldest first'),
          params: FileSharePath,
          querystring: ListAccessRules,
          response: { 200: AccessRuleCollection },
        },
      },
      (request) => fileShares.listAccessRules(request.scope, request.params.file_share_id, request.query),
    );

    app.delete(
      `${one}/access_rule/:access_rule_id`,
      {
        schema: {
          ...summarize('deleteFileShareAccessRule', 'Delete an access rule of a file share'),
          params: AccessRulePath,
          response: nothing,
        },
      },
      async (request, reply) => {
        const { file_share_id, access_rule_id } = request.params;
        await fileShares.deleteAccessRule(request.by, request.scope, file_share_id, access_rule_id);
        return reply.code(204).send(null);
      },
    );

    app.post(
      `${all}/check_limits`,
      {
        schema: {
          ...summarize('checkFileShareLimits', 'Tell which quotas a new share of a size would exceed'),
          params: ProjectRegion,
          body: ExtendFileShare,
          response: { 200: FileShareRequiredQuota },
        },
      },
      (request) => fileShares.checkLimits(request.scope, request.body.size),
    );

    metadataRoutes(fileShares, {
      one,
      path: FileSharePath,
      id: 'file_share_id',
      name: 'FileShare',
      words: 'a file share',
      tag: 'File shares',
    })(app);
  };
}
