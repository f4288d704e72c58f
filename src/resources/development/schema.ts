/** Requests and responses of development mode. */
import { type Static, Type } from 'typebox';
import { faultModes, faultyOperations } from '../../drivers/faults.ts';
import { Body, Collection, Component, Described, Instant, OrNull } from '../../http/shapes.ts';

/** A century. */
const maxSeconds = 3_155_760_000;

export const MoveClock = Body(
  'MoveClock',
  [{ advance_seconds: 3600 }],
  {
    advance_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: maxSeconds,
        description: 'Seconds to advance; work that becomes due is done',
      }),
    ),
    set: Type.Optional(Described(Instant, 'The new time')),
    real: Type.Optional(Type.Literal(true, { description: 'Return to the real time' })),
  },
  'Exactly one of the fields',
);
export type MoveClock = Static<typeof MoveClock>;
export const ClockNow = Component('ClockNow', {
  now: Type.String({ format: 'date-time', description: 'The time of the clock' }),
});
export const MovedClock = Component('MovedClock', {
  ...ClockNow.properties,
  complete: Type.Boolean({
    description:
      'Whether the work that became due is done; false: some of it took too long, hangs or was skipped because the ' +
      'clock jumped over it after 45 s, and the workers catch up',
  }),
});
export type MovedClock = Static<typeof MovedClock>;

export const FaultyOperation = Type.Enum([...faultyOperations], { description: 'Operation of the driver' });
export type FaultyOperation = Static<typeof FaultyOperation>;
export const FaultMode = Type.Enum([...faultModes], { description: 'How the operation fails' });
export type FaultMode = Static<typeof FaultMode>;

/** `resources`: the names of the resources whose drivers can fail. */
export const createFaultBody = (resources: string[]) =>
  Body('CreateFault', [{ resource: resources[0], operation: faultyOperations[0], mode: faultModes[0] }], {
    resource: Type.Enum(resources, { description: 'Kind of resource' }),
    operation: FaultyOperation,
    mode: FaultMode,
    count: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1, description: 'Number of operations' }),
    ),
    seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        description: 'Duration of `slow` (default: 5) and `stall` (default: until it is cleared)',
      }),
    ),
    message: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1000, description: 'Error message of the failed task' }),
    ),
  });
export type CreateFault = Static<ReturnType<typeof createFaultBody>>;

export const Fault = Component('Fault', {
  id: Type.Integer({ description: 'ID of the fault' }),
  resource: Type.String({ description: 'Kind of resource' }),
  operation: FaultyOperation,
  mode: FaultMode,
  count: Type.Integer({ description: 'Number of operations' }),
  remaining: Type.Integer({ description: 'Number of operations that will still fail' }),
  seconds: OrNull.integer('Duration of `slow` and `stall`'),
  message: OrNull.text('Error message of the failed task'),
});
export type Fault = Static<typeof Fault>;
export const FaultCollection = Collection(Fault);
