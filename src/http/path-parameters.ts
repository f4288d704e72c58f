/** Path parameters that many resources share. Their names are unique, so each one is a component of the OpenAPI document. */
import { Type } from 'typebox';
import { exampleUuid, IntegerId, Uuid } from './shapes.ts';

export const pathParameters = {
  project_id: { ...IntegerId, description: 'ID of the project', examples: [1] },
  region_id: { ...IntegerId, description: 'ID of the region', examples: [1] },
  client_id: { ...IntegerId, description: 'ID of the client', examples: [1] },
};

/** The UUID in a path. `what` is a noun with its article: "the volume". */
export const IdOf = (what: string) => Type.String({ ...Uuid, description: `ID of ${what}`, examples: [exampleUuid] });

/** The integer ID in a path, of resources that have one. */
export const NumberOf = (what: string) => Type.Integer({ ...IntegerId, description: `ID of ${what}`, examples: [1] });
