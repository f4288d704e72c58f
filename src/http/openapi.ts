import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';

/** What stands at the head of the OpenAPI document; the paths come from the routes' schemas. */
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
};
