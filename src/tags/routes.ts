/** The deprecated operations on the tags of a resource, named metadata. Responses to these changes have no body. */
import { type TSchema, Type } from 'typebox';
import { projectMember, projectReader } from '../authz/access.ts';
import type { RequestContext, Scope } from '../authz/actor.ts';
import type { Routes } from '../http/app.ts';
import { operationsOf, type OperationTag } from '../http/operations.ts';
import { Described, Page } from '../http/shapes.ts';
import {
  AnyTagKey,
  CreateTags,
  deleting,
  errorsOfTagMap,
  merging,
  pageOfTags,
  replacingBy,
  Tag,
  type TagChange,
  TagCollection,
  type Tags,
  tagWithKey,
} from './tags.ts';

/** The interface of the service of a resource with tags. */
interface Tagged {
  /** @throws ClientError 404 */
  tagsOf(scope: Scope, id: string): Promise<Tags>;
  /** @throws ClientError 400, 404, 409 */
  changeTags(context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<unknown>;
}

interface MetadataOptions {
  /** The tag of the resource's operations. */
  tag: OperationTag;
  /** The path parameter with the ID of the resource, and its shape. */
  parameter: Record<string, TSchema>;
  /** As in `createVolumeMetadata`. */
  name: string;
  /** As in "a volume". */
  noun: string;
  /** False if the resource has its own operation that replaces the tags. */
  withReplace?: boolean;
  /** For a resource whose v2 operations have the plain ids: the bodies of the v1 changes, whose ids end with V1. */
  v1Bodies?: Record<'create' | 'replace', TSchema>;
}

/** `resourcePath`: the path of one resource, such as `/cloud/v1/volumes/:project_id/:region_id/:volume_id`. */
export function metadataOperations(
  tagged: Tagged,
  resourcePath: `${string}/:project_id/:region_id/${string}`,
  { tag, parameter, name, noun, withReplace = true, v1Bodies }: MetadataOptions,
): Routes[] {
  const [suffix, version] = v1Bodies ? ['V1', ' (v1)'] : ['', ''];
  const { create, replace } = v1Bodies ?? { create: CreateTags, replace: CreateTags };
  const operation = operationsOf(tag, parameter);
  const [idName] = Object.keys(parameter) as [string];
  const idOf = (request: { params: unknown }) => (request.params as Record<string, string>)[idName]!;
  const path = `${resourcePath}/metadata` as '/:project_id/:region_id';
  const itemPath = `${resourcePath}/metadata_item` as '/:project_id/:region_id';
  const description = `Use the \`tags\` of the ${noun} instead.`;
  const shared = { description, deprecated: true };
  const query = Type.Object({ key: Described(AnyTagKey, 'Key of the tag') });

  const write = (
    method: 'POST' | 'PUT',
    verb: string,
    summary: string,
    body: TSchema,
    change: (tags: CreateTags) => TagChange,
  ) =>
    operation(method, path, {
      ...shared,
      id: `${verb}${name}Metadata${suffix}`,
      summary: `${summary} of a ${noun}${version}`,
      access: projectMember,
      body,
      bodyErrors: errorsOfTagMap,
      handle: ({ by, scope, params, body }) =>
        tagged.changeTags(by, scope, idOf({ params }), change(body as CreateTags)),
    });

  return [
    write('POST', 'create', 'Add or change tags', create, merging),
    ...(withReplace ? [write('PUT', 'replace', 'Replace the tags', replace, replacingBy)] : []),
    operation('GET', path, {
      ...shared,
      id: `list${name}Metadata`,
      summary: `List the tags of a ${noun}`,
      access: projectReader,
      query: Page,
      response: TagCollection,
      handle: async (request) => pageOfTags(await tagged.tagsOf(request.scope, idOf(request)), request.query),
    }),
    operation('GET', itemPath, {
      ...shared,
      id: `get${name}MetadataItem`,
      summary: `Get a tag of a ${noun}`,
      access: projectReader,
      query,
      response: Tag,
      handle: async (request) => tagWithKey(await tagged.tagsOf(request.scope, idOf(request)), request.query.key),
    }),
    operation('DELETE', itemPath, {
      ...shared,
      id: `delete${name}MetadataItem${suffix}`,
      summary: `Delete a tag of a ${noun}${version}`,
      access: projectMember,
      query,
      handle: (request) => tagged.changeTags(request.by, request.scope, idOf(request), deleting(request.query.key)),
    }),
  ];
}
