/** Spans of jobs and of the driver calls that they make. Only used while traces are on. */
import { type Db, prepared } from '../platform/db.ts';
import type { Tracer } from '../platform/tracing/tracer.ts';
import type { Reconciler } from './reconcile.ts';

const findTask = prepared<{ id: string; request_id: string | null; task_type: string; client_id: number }>(
  'traced_task',
  `select id, request_id, task_type, client_id from tasks
   where resource_id = $1 and state in ('NEW', 'RUNNING') order by created_on desc, id limit 1`,
);

/** Continues the trace of the newest request that waits for the resource. A job without a task begins a trace. */
export function tracedReconciler(reconciler: Reconciler, tracer: Tracer, db: Db): Reconciler {
  const { resource } = reconciler;
  return {
    ...reconciler,
    async reconcile(id, signal, noteGeneration) {
      const [task] = await findTask(db, id);
      const attributes = {
        ...{ 'cloudyard.resource': resource, 'cloudyard.resource_id': id },
        ...(task && {
          'cloudyard.task_id': task.id,
          'cloudyard.task_type': task.task_type,
          'cloudyard.client_id': task.client_id,
        }),
      };
      return tracer.job(`reconcile ${resource}`, task?.request_id ?? null, attributes, () =>
        reconciler.reconcile(id, signal, noteGeneration),
      );
    },
  };
}

/** The same driver; its calls within a job have spans. */
export function tracedDriver<D extends object>(driver: D, tracer: Tracer): D {
  return new Proxy(driver, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if ((name !== 'apply' && name !== 'remove') || typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const { name: driverName = '' } = target as { name?: string };
        const attributes = { 'cloudyard.driver': driverName };
        return tracer.within(`${driverName}.${name}`, attributes, async () => value.apply(target, args) as unknown);
      };
    },
  });
}
