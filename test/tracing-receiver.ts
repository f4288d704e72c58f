/** Receives traces by OTLP over HTTP, as a collector does. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  links: { traceId: string; spanId: string }[];
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status?: { code: number; message: string };
  attributes: Record<string, unknown>;
  /** Attributes of the process. */
  resource: Record<string, unknown>;
}

export interface TraceReceiver {
  endpoint: string;
  spans: ReceivedSpan[];
  headers: IncomingHttpHeaders[];
  /** The status of the next answers; default: 200. */
  status: number;
  stop(): Promise<void>;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}

export async function openTraceReceiver(): Promise<TraceReceiver> {
  const received: TraceReceiver = { endpoint: '', spans: [], headers: [], status: 200, stop: async () => {} };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request.setEncoding('utf8')) text += part;
    received.headers.push(request.headers);
    if (received.status === 200) received.spans.push(...spansOf(JSON.parse(text)));
    response.statusCode = received.status;
    response.setHeader('content-type', 'application/json').end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  received.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  received.stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return received;
}

function spansOf({ resourceSpans }: { resourceSpans: any[] }): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }: { spans: any[] }) =>
      spans.map((span) => ({
        ...span,
        attributes: valuesOf(span.attributes),
        resource: valuesOf(resource.attributes),
      })),
    ),
  );
}

function valuesOf(attributes: Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
