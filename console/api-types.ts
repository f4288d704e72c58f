import './vite/typescript-5.mjs';

/** The text of console/src/api/openapi.d.ts: the types of the console's API client, from the OpenAPI document. */
export async function apiTypes(document: object): Promise<string> {
  // Imported here, after the hook is registered.
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  return `// Generated from openapi.json (npm run generate).\n${astToString(await openapiTS(document as never))}`;
}
