/** The operations of development mode; without it they are not there. */
import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ClockNow, createFaultBody, Fault, FaultCollection, MoveClock } from './schema.ts';
import type { Development } from './service.ts';

const tags = ['Development'];
const faults = '/cloudyard/v1/dev/faults';

export function developmentRoutes(development: Development, faultNames: string[]): Routes {
  return (app) => {
    app.post(
      '/cloudyard/v1/dev/clock',
      {
        schema: {
          operationId: 'moveClock',
          summary: 'Let time pass, set the clock, or go back to the real time (development mode only)',
          tags,
          body: MoveClock,
          response: { 200: ClockNow },
        },
      },
      (request) => development.moveClock(request.by, request.body),
    );

    app.post(
      faults,
      {
        schema: {
          operationId: 'createFault',
          summary: 'Have the next operations of a driver fail, stall or take their time (development mode only)',
          tags,
          body: createFaultBody(faultNames),
          response: { 200: Fault },
        },
      },
      (request) => development.createFault(request.by, request.body),
    );

    app.get(
      faults,
      {
        schema: {
          operationId: 'listFaults',
          summary: 'List faults, oldest first (development mode only)',
          tags,
          response: { 200: FaultCollection },
        },
      },
      () => development.listFaults(),
    );

    app.delete(
      faults,
      {
        schema: {
          operationId: 'clearFaults',
          summary: 'Clear all faults; what stalls goes on (development mode only)',
          tags,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await development.clearFaults(request.by);
        return reply.code(204).send(null);
      },
    );
  };
}
