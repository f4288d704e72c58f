import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openTraceReceiver, type TraceReceiver } from '../../../test/tracing-receiver.ts';
import { silentLogger } from '../log.ts';
import { createExporter } from './exporter.ts';
import { contextOfRequest, createTracer, type EndedSpan, spanKinds } from './tracer.ts';

const id = '0b0f3a4e-6a3b-4a3c-9a57-1f2d3c4b5a69';
const startedAt = 1_700_000_000_000;
const request = (own: object = {}) => ({
  ...{ id, name: 'createFileShare', traceparent: undefined, startedAt, attributes: {}, ...own },
});

describe('a tracer', () => {
  let spans: EndedSpan[] = [];
  const tracer = createTracer((span) => spans.push(span));
  beforeEach(() => (spans = []));

  it('continues the trace of a request in its job, and in the calls within the job only', async () => {
    tracer.request(request());
    await tracer.job('reconcile', id, { a: 1 }, async () => {
      await Promise.all([tracer.within('x.apply', {}, async () => {}), tracer.within('x.remove', {}, async () => {})]);
    });
    await tracer.within('y.apply', {}, async () => {});
    const [of, apply, remove, job] = spans;
    expect(spans.length).toBe(4);
    expect(of).toMatchObject({ ...contextOfRequest(id), parentSpanId: null, kind: spanKinds.server });
    expect(job).toMatchObject({ traceId: of!.traceId, parentSpanId: of!.spanId, kind: spanKinds.consumer });
    for (const call of [apply, remove]) expect(call).toMatchObject({ traceId: of!.traceId, parentSpanId: job!.spanId });
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(4);
    for (const { traceId, spanId } of spans) {
      expect(traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(spanId).toMatch(/^[0-9a-f]{16}$/);
    }
  });

  it.each([null, 'no uuid', id.toUpperCase()])('begins a trace for a job of the request %s', async (requestId) => {
    await tracer.job('reconcile', requestId, {}, async () => {});
    expect(spans[0]!.parentSpanId).toBeNull();
  });

  it('links the trace of the client, if its header is valid', () => {
    const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
    const valid = `00-${traceId}-${spanId}-01`;
    const invalid = [
      undefined,
      '',
      `${valid}-x`,
      valid.toUpperCase(),
      valid.replace(/4b\w+/, '0'.repeat(32)),
      'x'.repeat(9999),
    ];
    for (const traceparent of [valid, ...invalid]) tracer.request(request({ traceparent }));
    expect(spans.map(({ links }) => links)).toEqual([[{ traceId, spanId }], ...invalid.map(() => [])]);
  });

  it('records failures, and passes them on', async () => {
    const failure = new Error('no space left');
    await expect(tracer.job('reconcile', id, {}, () => Promise.reject(failure))).rejects.toBe(failure);
    expect(spans[0]).toMatchObject({ error: 'no space left' });
  });

  it('records a part of all traces, the same ones everywhere', async () => {
    const [one, other] = [
      createTracer((span) => spans.push(span), 0.25),
      createTracer((span) => spans.push(span), 0.25),
    ];
    const ids = Array.from({ length: 400 }, () => randomUUID());
    for (const each of ids) {
      one.request(request({ id: each }));
      await other.job('reconcile', each, {}, () => other.within('call', {}, async () => {}));
    }
    const traces = spans.map(({ traceId }) => traceId);
    const counts = ids.map((each) => traces.filter((traceId) => traceId === contextOfRequest(each).traceId).length);
    expect(new Set(counts)).toEqual(new Set([0, 3]));
    expect(counts.filter((count) => count > 0).length).toBeGreaterThan(40);
    expect(counts.filter((count) => count > 0).length).toBeLessThan(200);
  });
});

describe('the exporter', () => {
  let receiver: TraceReceiver;
  beforeAll(async () => {
    receiver = await openTraceReceiver();
  });
  afterAll(() => receiver.stop());

  const span: EndedSpan = {
    ...{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), parentSpanId: null, name: 'a', kind: 2, links: [] },
    ...{ startedAt: startedAt + 0.25, endedAt: startedAt + 2, error: 'failed' },
    attributes: { text: 'x', count: 3, part: 0.5, flag: true },
  };
  const open = (endpoint = receiver.endpoint) =>
    createExporter({
      ...{ endpoint: `${endpoint}/`, headers: { authorization: 'Bearer x' }, log: silentLogger, intervalMs: 10 },
      resource: { 'service.name': 'cloudyard' },
    });

  it('sends spans in the format of OTLP', async () => {
    const exporter = open();
    exporter.record(span);
    await exporter.stop();
    expect(receiver.headers[0]).toMatchObject({ authorization: 'Bearer x', 'content-type': 'application/json' });
    expect(receiver.spans).toEqual([
      {
        ...{ traceId: span.traceId, spanId: span.spanId, name: 'a', kind: 2, links: [] },
        ...{ startTimeUnixNano: '1700000000000250000', endTimeUnixNano: '1700000000002000000' },
        status: { code: 2, message: 'failed' },
        attributes: { text: 'x', count: '3', part: 0.5, flag: true },
        resource: { 'service.name': 'cloudyard' },
      },
    ]);
  });

  it('keeps spans while the collector is away, up to a limit, and drops those that it refuses', async () => {
    receiver.spans = [];
    receiver.status = 503;
    const exporter = open();
    for (let i = 0; i < 10_100; i++) exporter.record({ ...span, name: String(i) });
    const before = receiver.headers.length;
    await vi.waitUntil(() => receiver.headers.length > before + 2, { timeout: 30_000, interval: 5 });
    receiver.status = 200;
    await vi.waitUntil(() => receiver.spans.length === 10_000, { timeout: 20_000, interval: 5 });
    expect(receiver.spans.at(-1)!.name).toBe('9999');

    receiver.status = 400;
    const answered = receiver.headers.length;
    exporter.record(span);
    await vi.waitUntil(() => receiver.headers.length > answered, { timeout: 30_000, interval: 5 });
    receiver.status = 200;
    exporter.record({ ...span, name: 'after' });
    await vi.waitUntil(() => receiver.spans.length === 10_001, { timeout: 30_000, interval: 5 });
    expect(receiver.spans.at(-1)!.name).toBe('after');
    await exporter.stop();
  });

  it('ends although the collector cannot be reached', async () => {
    const exporter = open('http://127.0.0.1:1');
    exporter.record(span);
    await exporter.stop();
  });
});
