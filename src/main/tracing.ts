/** Opens the exporter of traces, if a collector is set. The modules are loaded only then. */
import { hostname } from 'node:os';
import type { Logger } from '../platform/log.ts';
import type { Tracer } from '../platform/tracing/tracer.ts';
import type { Settings } from './settings.ts';
import type { ShutdownSteps } from './shutdown.ts';
import { version } from './version.ts';

/** Null without a collector. Adds the step that sends the remaining spans. */
export async function openTracer(settings: Settings, log: Logger, closing: ShutdownSteps): Promise<Tracer | null> {
  if (!settings.tracing) return null;
  const { createExporter } = await import('../platform/tracing/exporter.ts');
  const { createTracer } = await import('../platform/tracing/tracer.ts');
  const { endpoint, headers, ratio } = settings.tracing;
  const resource = {
    ...{ 'service.name': 'cloudyard', 'service.version': version },
    ...{ 'host.name': hostname(), 'process.pid': process.pid },
  };
  const exporter = createExporter({ endpoint, headers, resource, log });
  closing.push(exporter.stop);
  return createTracer(exporter.record, ratio);
}
