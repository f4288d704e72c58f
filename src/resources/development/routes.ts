/** The operations of development mode; they exist in that mode only. */
import { operatorAdmin } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { NumberOf } from '../../http/path-parameters.ts';
import { ClockNow, createFaultBody, Fault, FaultCollection, MoveClock, MovedClock } from './schema.ts';
import type { Development } from './service.ts';

const operation = operationsOf(
  {
    name: 'Development',
    description: 'Operations of development mode (`CLOUDYARD_DEV=1`): a clock that can be moved, and injected faults.',
  },
  { fault_id: NumberOf('the fault') },
);
const clock = '/cloudyard/v1/dev/clock';
const faults = '/cloudyard/v1/dev/faults';

export const developmentOperations = (development: Development, faultNames: string[]) => [
  operation('GET', clock, {
    id: 'getClock',
    summary: 'Get the clock',
    access: operatorAdmin,
    response: ClockNow,
    handle: () => development.getClock(),
  }),
  operation('POST', clock, {
    id: 'moveClock',
    summary: 'Move the clock',
    description: 'Advances the clock, sets it, or returns to the real time.',
    access: operatorAdmin,
    body: MoveClock,
    response: MovedClock,
    // It takes as long as the work that becomes due.
    route: { config: { limitsItself: true } },
    handle: ({ by, body }) => development.moveClock(by, body),
  }),
  operation('POST', faults, {
    id: 'createFault',
    summary: 'Inject a fault',
    description: 'The next operations of a driver fail, stall or take longer.',
    access: operatorAdmin,
    body: createFaultBody(faultNames),
    response: Fault,
    handle: ({ by, body }) => development.createFault(by, body),
  }),
  operation('GET', faults, {
    id: 'listFaults',
    summary: 'List injected faults',
    description: 'The oldest fault comes first.',
    access: operatorAdmin,
    response: FaultCollection,
    handle: () => development.listFaults(),
  }),
  operation('DELETE', faults, {
    id: 'clearFaults',
    summary: 'Clear all injected faults',
    description: 'Stalled operations continue.',
    access: operatorAdmin,
    handle: ({ by }) => development.clearFaults(by),
  }),
  operation('DELETE', `${faults}/:fault_id`, {
    id: 'deleteFault',
    summary: 'Clear an injected fault',
    description: 'Operations that it stalls continue.',
    access: operatorAdmin,
    handle: ({ by, params }) => development.deleteFault(by, params.fault_id),
  }),
];
