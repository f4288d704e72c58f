/** The OpenAPI document. Operations supply the paths; this module adds the introduction, errors and components. */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { type TSchema, Type } from 'typebox';
import { catalogue } from '../errors/catalogue.ts';
import type { App } from './app.ts';
import { isOptionalBody } from './json-body.ts';
import { withComponents } from './openapi-components.ts';
import { addLinks } from './openapi-links.ts';

const requestId = '0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10';

const ErrorBody = Type.Object(
  {
    exception_class: Type.Enum(Object.keys(catalogue), { description: 'Machine-readable error code' }),
    message: Type.String({ description: 'Human-readable error message' }),
    request_id: Type.String({ description: 'ID of the request in the server log; also in the header `X-Request-Id`' }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: 'Path of the field, such as `listeners.0.protocol_port`' }),
          message: Type.String({ description: 'Error message of the field' }),
        }),
        { description: 'The invalid fields, at most 100' },
      ),
    ),
  },
  {
    description: Object.entries(catalogue)
      .map(([code, { status, meaning }]) => `${status} \`${code}\`: ${meaning}`)
      .join('\n\n'),
    examples: [
      {
        exception_class: 'InvalidInput',
        message: 'the request is invalid',
        request_id: requestId,
        errors: [{ path: 'size', message: 'must be at least 1' }],
      },
    ],
  },
);

const ErrorResponse = {
  description: 'Error; `exception_class` contains the error code',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
};

const introduction = `A self-hosted cloud control plane, wire-compatible with the Gcore Cloud API.

## Authentication
Send the token in the header \`Authorization: apikey <token>\`. \`npm start\` prints the first token; \`cloudyard token create\`
creates others. A token has a role: a \`reader\` sees, a \`member\` also changes, an \`admin\` also manages projects.

## Tasks
Operations that take time return \`{"tasks": ["<id>"]}\` at once. Poll \`GET /cloud/v1/tasks/{task_id}\` until \`state\` is
\`FINISHED\` or \`ERROR\`. \`created_resources\` contains the IDs of new resources, \`error\` the reason of a failure.

## Errors
The body of every error is an \`Error\`: a code in \`exception_class\`, a message, the ID of the request, and in \`errors\` one
entry for each invalid field. 429 and 503 have the header \`Retry-After\` in seconds.

## Idempotency
A POST may have the header \`Idempotency-Key\` (1 to 255 characters). The same request with the same key within 24 hours gets
the same response and changes nothing.

## Paging
Lists take \`limit\` (at most 1,000) and \`offset\`. \`count\` is the number of all matches.

## Dates and units
Dates are ISO 8601 in UTC. Sizes are GiB unless the field says otherwise. IDs are UUIDs or integers.`;

interface DescribedOperation {
  responses: Record<string, { description?: string }>;
  parameters?: { required?: boolean }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: TSchema }> };
}
type Operations = Record<string, DescribedOperation>;

/** Corrects what the library makes of an operation, and adds the error response, in place. */
function complete({ responses, requestBody, parameters = [] }: DescribedOperation): void {
  for (const response of Object.values(responses)) {
    if (response.description === 'Default Response') response.description = 'Success';
  }
  responses['default'] = { $ref: '#/components/responses/Error' } as object;
  const [content] = Object.values(requestBody?.content ?? {});
  if (requestBody && isOptionalBody(content?.schema)) delete requestBody.required;
  // False is the default.
  for (const parameter of parameters) if (!parameter.required) delete parameter.required;
}

export function openApiOptions(app: App): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Cloudyard',
        version: '1',
        description: introduction,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } as never,
      },
      servers: [
        { url: '/', description: 'The server that serves this document' },
        { url: 'http://127.0.0.1:8080', description: 'The default address' },
      ],
      components: {
        securitySchemes: {
          apikey: {
            type: 'apiKey',
            in: 'header',
            name: 'Authorization',
            description: 'The word `apikey`, a space and the token: `apikey <token>`',
          },
        },
      },
      security: [{ apikey: [] }],
    },
    transformObject(made) {
      if (!('openapiObject' in made)) return {};
      const { openapiObject: document } = made;
      for (const operations of Object.values(document.paths ?? {}) as Operations[]) {
        for (const operation of Object.values(operations)) complete(operation);
      }
      addLinks(document.paths as never);
      const { paths, components } = withComponents(document.paths as Record<string, unknown>);
      return {
        ...document,
        tags: [...app.declaredTags].map(([name, description]) => ({ name, description })),
        paths,
        components: {
          ...document.components,
          parameters: components.parameters,
          requestBodies: components.requestBodies,
          schemas: { ...components.schemas, Error: ErrorBody },
          responses: { ...components.responses, Error: ErrorResponse },
        },
      } as never;
    },
  };
}
