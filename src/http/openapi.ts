import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { Type } from 'typebox';
import { catalogue } from '../errors/catalogue.ts';

/** The body of every error. */
const ErrorBody = Type.Object(
  {
    exception_class: Type.Enum(Object.keys(catalogue)),
    message: Type.String({ description: 'A sentence for people' }),
    request_id: Type.String({ description: 'The operator finds the request in the log under it' }),
    errors: Type.Optional(
      Type.Array(Type.Object({ path: Type.String(), message: Type.String() }), { description: 'The fields at fault' }),
    ),
  },
  {
    description: Object.entries(catalogue)
      .map(([code, { status, meaning }]) => `${status} \`${code}\`: ${meaning}`)
      .join('\n\n'),
  },
);
const error = {
  description: 'An error; `exception_class` says which',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

type Operations = Record<string, { responses: Record<string, unknown> }>;

/** What stands at the head of the OpenAPI document; the paths come from the routes' schemas, and errors are the same everywhere. */
export const openApiDocument: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Cloudyard',
      version: '1',
      description:
        'A self-hosted cloud resource control plane, wire-compatible with the Gcore Cloud API. ' +
        'Errors are described in docs/errors.md.',
    },
    components: {
      securitySchemes: {
        apikey: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'The word `apikey`, a space, and the token: `apikey <id>$<secret>`',
        },
      },
    },
    security: [{ apikey: [] }],
  },
  transformObject(made) {
    if (!('openapiObject' in made)) return {};
    const { openapiObject: document } = made;
    for (const operations of Object.values(document.paths ?? {}) as Operations[]) {
      for (const operation of Object.values(operations))
        operation.responses = { ...operation.responses, default: error };
    }
    return {
      ...document,
      components: { ...document.components, schemas: { ...document.components?.schemas, Error: ErrorBody } },
    };
  },
};
