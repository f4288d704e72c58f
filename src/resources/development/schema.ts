/** Requests and responses of development mode. */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { faultModes, faultyOperations } from '../../drivers/faults.ts';
import { Collection, Nullable } from '../../http/shapes.ts';

/** A century: what adds up to more is no date that anything here can hold. */
const maxSeconds = 3_155_760_000;

export const MoveClock = Type.Object(
  {
    advance_seconds: Type.Optional(
      Type.Number({ minimum: 0, maximum: maxSeconds, description: 'lets time pass; all that becomes due is done' }),
    ),
    set: Type.Optional(Type.String({ format: 'date-time', description: 'jumps' })),
    real: Type.Optional(Type.Literal(true, { description: 'back to the real time' })),
  },
  { additionalProperties: false, description: 'one of these' },
);
export type MoveClock = Static<typeof MoveClock>;
export const ClockNow = Type.Object({ now: Type.String({ format: 'date-time' }) });

export const FaultyOperation = Type.Enum([...faultyOperations]);
export type FaultyOperation = Static<typeof FaultyOperation>;
export const FaultMode = Type.Enum([...faultModes]);
export type FaultMode = Static<typeof FaultMode>;

/** `resources`: the names of the resources whose drivers can fail. */
export const createFaultBody = (resources: string[]) =>
  Type.Object(
    {
      resource: Type.Enum(resources),
      operation: FaultyOperation,
      mode: FaultMode,
      count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1 })),
      seconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 86_400,
          description: 'how long slow (5 by default) and stall (until it is cleared) last',
        }),
      ),
      message: Type.Optional(
        Type.String({ minLength: 1, maxLength: 1000, description: 'what the task that fails tells the client' }),
      ),
    },
    { additionalProperties: false },
  );
export type CreateFault = Static<ReturnType<typeof createFaultBody>>;

export const Fault = Type.Object({
  id: Type.Integer(),
  resource: Type.String(),
  operation: FaultyOperation,
  mode: FaultMode,
  count: Type.Integer(),
  remaining: Type.Integer(),
  seconds: Nullable(Type.Integer()),
  message: Nullable(Type.String()),
});
export type Fault = Static<typeof Fault>;
export const FaultCollection = Collection(Fault);
export type FaultCollection = Static<typeof FaultCollection>;
