/** Runs in the namespace of outgoing-requests.test.ts: runs every attack and prints a report as JSON. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createVerifyLogin } from '../../src/drivers/registry-login/login.ts';
import { createWebhookDriver } from '../../src/drivers/webhook/driver.ts';
import { refusalOfUrl } from '../../src/drivers/webhook/allowed-url.ts';
import { parseRegistry } from '../../src/resources/pull-secrets/registry.ts';

const folder = process.argv[2]!;
const publicAddress = '9.9.9.9';
const internal: string[] = [];
const attacker: string[] = [];
const answers: Record<string, string> = {};

/** Responses of the attacker's name server in order; the last one repeats. */
const names: Record<string, string[][]> = {
  'evil.test': [[publicAddress]],
  'rebinding.test': [[publicAddress], ['127.0.0.1']],
  'both.test': [[publicAddress, '127.0.0.1']],
};

/** Answers A queries from `names`, and other queries with no records. */
async function nameServer(): Promise<void> {
  const socket = createSocket('udp4');
  socket.on('message', (query, peer) => {
    const labels: string[] = [];
    let at = 12;
    for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
    const question = query.subarray(12, at + 5);
    const isA = query.readUInt16BE(at + 1) === 1;
    const turns = names[labels.join('.')];
    const addresses = !isA || !turns ? [] : turns.length > 1 ? turns.shift()! : turns[0]!;
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(turns ? 0x8180 : 0x8183, 2);
    for (const [offset, count] of [1, addresses.length, 0, 0].entries()) header.writeUInt16BE(count, 4 + offset * 2);
    const records = addresses.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    );
    socket.send(Buffer.concat([header, question, ...records]), peer.port, peer.address);
  });
  socket.bind(53, '127.0.0.1');
  await once(socket, 'listening');
}

/** Listens on all addresses. Requests to the public address are harmless, because it belongs to the attacker. */
async function internalService(): Promise<number> {
  const server = createServer((request, response) => {
    const { localAddress = '' } = request.socket;
    if (!localAddress.endsWith(publicAddress)) internal.push(`${localAddress} ${request.url}`);
    response.end(JSON.stringify({ token: 'stolen' }));
  });
  server.listen(0, '::');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

let respond: (url: string, authorization: string | undefined) => { status: number; headers?: Record<string, string> };

async function attackerServer(secure: boolean): Promise<number> {
  const options = { cert: readFileSync(join(folder, 'evil.pem')), key: readFileSync(join(folder, 'evil.key')) };
  const listener = (request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => {
    attacker.push(`${request.url === '/hook' ? 'webhook' : 'verify'} ${request.url}`);
    const { status, headers } = respond(request.url!, request.headers.authorization);
    response.writeHead(status, headers).end(JSON.stringify({ token: 'mine' }));
  };
  const server = secure ? createTlsServer(options, listener) : createServer(listener);
  server.listen(0, publicAddress);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

await nameServer();
const inside = await internalService();
const secure = await attackerServer(true);
const plain = await attackerServer(false);
const verifyLogin = createVerifyLogin({ networks: [], isOwn: () => false });
const credentials = { login: 'tenant', password: 'canary' };

async function verify(what: string, registry: string): Promise<void> {
  const address = parseRegistry(registry);
  answers[`verify ${what}`] =
    typeof address === 'string' ? 'refused by name' : (await verifyLogin(address, credentials)).outcome;
}

const bearer = (realm: string) => () => ({
  status: 401,
  headers: { 'www-authenticate': `Bearer realm="${realm}",service="x"` },
});

respond = (_url, authorization) =>
  authorization ? { status: 200 } : { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } };
await verify('an honest registry', `evil.test:${secure}`);
for (const [spelling, host] of Object.entries({
  loopback: '127.0.0.1',
  metadata: '169.254.169.254',
  IPv6: '[::1]',
  mapped: '[::ffff:127.0.0.1]',
  short: '127.1',
  decimal: '2130706433',
  wildcard: '0.0.0.0',
  localhost: 'localhost',
})) {
  await verify(spelling, `${host}:${inside}`);
}
respond = () => ({ status: 302, headers: { location: `http://127.0.0.1:${inside}/v2/` } });
await verify('a redirect', `evil.test:${secure}`);
respond = bearer(`http://127.0.0.1:${inside}/token`);
await verify('a token server at loopback', `evil.test:${secure}`);
respond = bearer(`http://169.254.169.254:${inside}/token`);
await verify('a token server at a metadata address', `evil.test:${secure}`);
respond = bearer(`https://rebinding.test:${inside}/token`);
await verify('a token server with a rebinding name', `evil.test:${secure}`);
names['rebinding.test'] = [[publicAddress], ['127.0.0.1']];
await verify('a rebinding name', `rebinding.test:${inside}`);
await verify('a name with two addresses', `both.test:${inside}`);

const webhooks = createWebhookDriver({ allowPrivate: false, now: () => new Date() });

/** Checks the URL as the API does at registration, then calls it as a delivery does. */
async function call(what: string, url: string): Promise<void> {
  const refusal = await refusalOfUrl(url);
  const sending = webhooks.send({ id: 'id', url, secret: 'secret', body: '{}' }, AbortSignal.timeout(20_000));
  const sent = await sending.then(
    ({ answer }) => answer,
    (error: { customerMessage: string }) => error.customerMessage,
  );
  answers[`webhook ${what}`] = refusal ? `${refusal}; ${sent}` : sent;
}

respond = () => ({ status: 302, headers: { location: `http://127.0.0.1:${inside}/` } });
await call('with a redirect', `http://evil.test:${plain}/hook`);
names['rebinding.test'] = [[publicAddress], ['127.0.0.1']];
await call('to a rebinding name', `http://rebinding.test:${inside}/hook`);
await call('to a name with two addresses', `http://both.test:${inside}/hook`);
for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', '0.0.0.0', '169.254.169.254']) {
  await call(`to ${host}`, `http://${host}:${inside}/hook`);
}

process.stdout.write(JSON.stringify({ answers, internal, attacker }), () => process.exit(0));
