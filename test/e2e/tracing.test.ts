/** A trace from a request of one process through the job of another to the driver. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { openTraceReceiver, type TraceReceiver } from '../tracing-receiver.ts';

let yard: Yard;
let server: Running;
let receiver: TraceReceiver;

beforeAll(async () => {
  receiver = await openTraceReceiver();
  yard = await openYard({
    CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
    CLOUDYARD_PROCESSES: '2',
    CLOUDYARD_OTLP_ENDPOINT: receiver.endpoint,
    CLOUDYARD_OTLP_HEADERS: 'X-Scope = tests',
  });
  server = await yard.start(['start']);
});
afterAll(async () => {
  yard?.cleanUp();
  await receiver?.stop();
});

it('leads from a request to the calls of the driver', async () => {
  const network = await yard.get('/cloud/v1/networks/1/1');
  const created = await yard.post('/cloud/v1/file_shares/1/1', {
    ...{ name: 'traced', protocol: 'NFS', size: 1, network: { network_id: network.body.results[0].id } },
  });
  expect(created.status).toBe(200);
  expect((await yard.ended(created)).state).toBe('FINISHED');
  const traceId = created.headers.get('x-request-id')!.replaceAll('-', '');
  const spans = () => receiver.spans.filter((span) => span.traceId === traceId);
  await until(() => spans().some(({ name }) => name === 'simulated.apply') && spans().length >= 3, 20, 'the spans');
  const named = (name: string) => spans().find((span) => span.name === name)!;
  const [request, job, call] = [named('createFileShare'), named('reconcile file_share'), named('simulated.apply')];
  expect(request.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.route': '/cloud/v1/file_shares/:project_id/:region_id',
    'http.response.status_code': '200',
  });
  expect(request.parentSpanId).toBeUndefined();
  expect(job).toMatchObject({
    parentSpanId: request.spanId,
    attributes: { 'cloudyard.task_id': created.body.tasks[0] },
  });
  expect(call.parentSpanId).toBe(job.spanId);
  expect(job.resource['process.pid']).not.toBe(request.resource['process.pid']);
  expect(receiver.headers[0]).toMatchObject({ 'x-scope': 'tests' });
  expect((await server.stop()).code).toBe(0);
});
