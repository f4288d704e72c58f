/**
 * Sends spans to a collector, with OTLP over HTTP in JSON.
 *
 * Failure modes: while the collector is away, at most `maxSpans` wait, and further ones are dropped and counted. Nothing
 * waits for the collector; at the end, the remaining spans are sent once.
 */
import type { Logger } from '../log.ts';
import { poll } from '../poll.ts';
import { joined } from '../turns.ts';
import type { Attributes, EndedSpan } from './tracer.ts';

interface ExporterOptions {
  /** Base URL of the collector; spans go to `/v1/traces` below it. */
  endpoint: string;
  headers: Record<string, string>;
  /** Such as `service.name`. */
  resource: Attributes;
  log: Logger;
  intervalMs?: number;
}

const maxSpans = 10_000;
const maxBatch = 500;
const timeoutMs = 10_000;
const defaultIntervalMs = 2000;

/** Sends the recorded spans every `intervalMs` (default 2 s) until `stop`. */
export function createExporter(options: ExporterOptions) {
  const { endpoint, headers, log, intervalMs = defaultIntervalMs } = options;
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  let spans: EndedSpan[] = [];
  let dropped = 0;
  let isFailing = false;

  const post = async (batch: EndedSpan[]) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(payloadOf(batch, options.resource)),
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'error',
    });
    await response.arrayBuffer();
    // Other answers mean that the collector will never take these spans.
    if (response.status === 429 || response.status >= 500) throw new Error(`the collector answered ${response.status}`);
    if (!response.ok) log.warn({ status: response.status, spans: batch.length }, 'the collector refused spans');
  };

  const flush = joined(async () => {
    while (spans.length > 0) {
      const batch = spans.slice(0, maxBatch);
      try {
        await post(batch);
      } catch (error) {
        if (!isFailing) log.warn({ err: error }, 'the collector of traces cannot be reached');
        isFailing = true;
        return;
      }
      spans = spans.slice(batch.length);
      if (isFailing) log.info({ dropped }, 'the collector of traces can be reached again');
      [isFailing, dropped] = [false, 0];
    }
  });
  const stopPolling = poll(flush, intervalMs);

  return {
    record(span: EndedSpan): void {
      if (spans.length < maxSpans) spans.push(span);
      else dropped += 1;
    },
    /** Sends the remaining spans. */
    async stop(): Promise<void> {
      stopPolling();
      await flush();
    },
  };
}

const instrumentation = { name: 'cloudyard' };
const failed = 2;

function payloadOf(spans: EndedSpan[], resource: Attributes) {
  const scope = { scope: instrumentation, spans: spans.map(spanOf) };
  return { resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans: [scope] }] };
}

function spanOf({ parentSpanId, startedAt, endedAt, attributes, error, ...span }: EndedSpan) {
  return {
    ...span,
    ...(parentSpanId !== null && { parentSpanId }),
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: attributesOf(attributes),
    ...(error !== undefined && { status: { code: failed, message: error } }),
  };
}

/** As text, because the number is too large for a double. */
function nanoseconds(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1000)) * 1000n);
}

function attributesOf(attributes: Attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));
}

function valueOf(value: Attributes[string]) {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
