/** The types of the Fastify app that routes and hooks share. create-app.ts makes the app. */
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { ClientScope, RequestContext, Scope } from '../authz/actor.ts';

export interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
}

export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxProvider
>;

/** Registers routes. */
export type Routes = (app: App) => void;

declare module 'fastify' {
  interface FastifyInstance {
    /** Descriptions of the tags of operations, by name. */
    declaredTags: Map<string, string>;
    /** Ends the hold of requests (`isHeld`). */
    admitRequests(): void;
    /** Responds to held requests with 503, and to those that arrive later. Has no effect after `admitRequests`. */
    refuseRequests(): void;
  }
  interface FastifyRequest {
    /** The authenticated caller. Absent on public routes. */
    by: RequestContext;
    /** `routeOptions`, which Fastify makes at each access. Set by the first hook (telemetry.ts). */
    route: FastifyRequest['routeOptions'];
    /** The client of the token, and the project and region that the path names. */
    scope: ClientScope & Partial<Scope>;
  }
}
