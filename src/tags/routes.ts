/**
 * The HTTP operations of a resource's tags under their older name, metadata: what changes answers nothing. Whatever has
 * tags may have them.
 */
import { Type } from 'typebox';
import type { TObject } from 'typebox';
import type { RequestContext, Scope } from '../authz/actor.ts';
import { notFound } from '../errors/catalogue.ts';
import type { Routes } from '../http/app.ts';
import { ShortText } from '../http/shapes.ts';
import { CreateTags, deleting, merging, presentTags, replacingBy, Tag, TagCollection } from './tags.ts';
import type { TagChange, Tags } from './tags.ts';

/** What the service of a resource does for them. */
export interface Tagged {
  /** @throws ClientError 404 */
  tagsOf(scope: Scope, id: string): Promise<Tags>;
  /** @throws ClientError 400, 404, 409 */
  changeTags(context: RequestContext, scope: Scope, id: string, change: TagChange): Promise<unknown>;
}

export interface MetadataOf {
  /** The path of one, such as `/cloud/v1/volumes/:project_id/:region_id/:volume_id`. */
  one: string;
  path: TObject;
  /** The parameter of the path that says which one. */
  id: string;
  /** As in `createVolumeMetadata`. */
  name: string;
  /** As in `a volume`. */
  words: string;
  tag: string;
  /** Whether another route replaces them. */
  replacedElsewhere?: boolean;
}

const MetadataKey = Type.Object({ key: ShortText });
const nothing = { 204: Type.Null({ description: 'Done' }) };

export function metadataRoutes(tagged: Tagged, { one, path, id, name, words, tag, ...of }: MetadataOf): Routes {
  return (app) => {
    const about = (operationId: string, summary: string) => ({
      operationId,
      summary: `${summary} of ${words}`,
      tags: [tag],
      deprecated: true,
      params: path,
    });
    const idOf = ({ params }: { params: unknown }) => (params as Record<string, string>)[id]!;
    const write = (
      method: 'POST' | 'PUT',
      operationId: string,
      summary: string,
      by: (given: CreateTags) => TagChange,
    ) =>
      app.route({
        method,
        url: `${one}/metadata`,
        schema: { ...about(operationId, summary), body: CreateTags, response: nothing },
        handler: async (request, reply) => {
          await tagged.changeTags(request.by, request.scope, idOf(request), by(request.body));
          return reply.code(204).send(null);
        },
      });

    write('POST', `create${name}Metadata`, 'Add or change tags', merging);
    if (!of.replacedElsewhere) write('PUT', `replace${name}Metadata`, 'Replace the user-managed tags', replacingBy);

    app.get(
      `${one}/metadata`,
      { schema: { ...about(`list${name}Metadata`, 'List the tags'), response: { 200: TagCollection } } },
      async (request) => {
        const results = presentTags(await tagged.tagsOf(request.scope, idOf(request)));
        return { count: results.length, results };
      },
    );

    app.get(
      `${one}/metadata_item`,
      {
        schema: {
          ...about(`get${name}MetadataItem`, 'Get one tag'),
          querystring: MetadataKey,
          response: { 200: Tag },
        },
      },
      async (request) => {
        const tags = presentTags(await tagged.tagsOf(request.scope, idOf(request)));
        const found = tags.find(({ key }) => key === request.query.key);
        if (!found) throw notFound('tag', request.query.key);
        return found;
      },
    );

    app.delete(
      `${one}/metadata_item`,
      {
        schema: {
          ...about(`delete${name}MetadataItem`, 'Delete one tag'),
          querystring: MetadataKey,
          response: nothing,
        },
      },
      async (request, reply) => {
        await tagged.changeTags(request.by, request.scope, idOf(request), deleting(request.query.key));
        return reply.code(204).send(null);
      },
    );
  };
}
