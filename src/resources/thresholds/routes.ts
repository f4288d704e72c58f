import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { ClientPath, SetThreshold, Threshold } from './schema.ts';
import type { Thresholds } from './service.ts';

const tags = ['Quotas'];
const path = '/cloud/v2/client_quotas/:client_id/notification_threshold';

export function thresholdRoutes(thresholds: Thresholds): Routes {
  return (app) => {
    app.get(
      path,
      {
        schema: {
          operationId: 'getNotificationThreshold',
          summary: 'Get the percentage of usage at which a client is told, and what it was told last',
          tags,
          params: ClientPath,
          response: { 200: Threshold },
        },
      },
      (request) => thresholds.get(request.params.client_id),
    );
    app.put(
      path,
      {
        schema: {
          operationId: 'setNotificationThreshold',
          summary: 'Set the percentage of usage at which a client is told',
          tags,
          params: ClientPath,
          body: SetThreshold,
          response: { 200: Threshold },
        },
      },
      (request) => thresholds.set(request.by, request.params.client_id, request.body),
    );
    app.delete(
      path,
      {
        schema: {
          operationId: 'deleteNotificationThreshold',
          summary: 'Go back to the default threshold',
          tags,
          params: ClientPath,
          response: { 204: Type.Null({ description: 'Done' }) },
        },
      },
      async (request, reply) => {
        await thresholds.delete(request.by, request.params.client_id);
        return reply.code(204).send(null);
      },
    );
  };
}
