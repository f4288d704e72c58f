/**
 * OpenTelemetry traces: from a request through the job of its task to the calls of drivers.
 *
 * Invariant: the trace of a request is its id, which the task stores. So a worker that runs the job, in whichever process
 * and after whatever crash, continues the trace without a column, a header or a statement of its own.
 *
 * A `traceparent` of a client becomes a link, not the parent: the trace ids of a public API are its own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { hash, randomBytes } from 'node:crypto';

export type Attributes = Record<string, string | number | boolean>;

/** As OTLP numbers them. */
export const spanKinds = { internal: 1, server: 2, client: 3, consumer: 5 } as const;

interface SpanContext {
  /** 32 and 16 hexadecimal digits. */
  traceId: string;
  spanId: string;
}

export interface EndedSpan extends SpanContext {
  name: string;
  kind: (typeof spanKinds)[keyof typeof spanKinds];
  parentSpanId: string | null;
  links: SpanContext[];
  /** Milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
  attributes: Attributes;
  /** Absent: it did not fail. */
  error?: string;
}

interface RequestSpan extends Pick<EndedSpan, 'name' | 'startedAt' | 'attributes' | 'error'> {
  id: string;
  traceparent: string | undefined;
}

export type Tracer = ReturnType<typeof createTracer>;

const traceparentPattern = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/;
const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** `record` gets each span when it ends. `ratio`: the part of all traces that is recorded, 0 to 1. */
export function createTracer(record: (span: EndedSpan) => void, ratio = 1) {
  const present = new AsyncLocalStorage<SpanContext | null>();

  const run = async <T>(
    span: Omit<EndedSpan, 'startedAt' | 'endedAt' | 'links'>,
    work: () => Promise<T>,
  ): Promise<T> => {
    const startedAt = Date.now();
    const end = (error?: string) =>
      record({ ...span, links: [], startedAt, endedAt: Date.now(), ...(error !== undefined && { error }) });
    try {
      const result = await present.run(span, work);
      end();
      return result;
    } catch (error) {
      end((error as Error).message);
      throw error;
    }
  };

  return {
    /** Records the span of a request that was answered. */
    request({ id, traceparent, ...span }: RequestSpan): void {
      const context = contextOfRequest(id);
      if (!isSampled(context, ratio)) return;
      const link = contextIn(traceparent);
      const links = link ? [link] : [];
      record({ ...context, ...span, kind: spanKinds.server, parentSpanId: null, links, endedAt: Date.now() });
    },

    /** Runs `work` in a span that continues the trace of a request; null: begins a trace. */
    job<T>(name: string, requestId: string | null, attributes: Attributes, work: () => Promise<T>): Promise<T> {
      const parent = requestId !== null && uuidPattern.test(requestId) ? contextOfRequest(requestId) : null;
      const context = { traceId: parent?.traceId ?? randomBytes(16).toString('hex'), spanId: newSpanId() };
      if (!isSampled(context, ratio)) return present.run(null, work);
      const { consumer: kind } = spanKinds;
      return run({ ...context, name, kind, parentSpanId: parent?.spanId ?? null, attributes }, work);
    },

    /** Runs `work` in a span within the current one. Without one it is not recorded. */
    within<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
      const parent = present.getStore();
      if (!parent) return work();
      const context = { traceId: parent.traceId, spanId: newSpanId() };
      return run({ ...context, name, kind: spanKinds.client, parentSpanId: parent.spanId, attributes }, work);
    },
  };
}

/** A request id is a UUID, so it has as many digits as a trace id. */
export function contextOfRequest(id: string): SpanContext {
  return { traceId: id.replaceAll('-', ''), spanId: hash('sha256', id).slice(0, 16) };
}

/** Null for a header that is absent or not valid. */
function contextIn(traceparent: string | undefined): SpanContext | null {
  const [, traceId, spanId] = traceparentPattern.exec(traceparent ?? '') ?? [];
  return traceId && spanId ? { traceId, spanId } : null;
}

/** The same in every process, because it depends on the trace only. */
function isSampled({ traceId }: SpanContext, ratio: number): boolean {
  // The last digits: the first half of a UUID has fixed ones.
  return Number.parseInt(traceId.slice(-8), 16) < ratio * 2 ** 32;
}

const newSpanId = () => randomBytes(8).toString('hex');
