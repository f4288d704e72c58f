/** Members for tests: they report what they see of a connection through it. `closeMembers` stops all of them. */
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, request } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type TlsOptions, type TLSSocket } from 'node:tls';

interface Member {
  port: number;
  /** The numbers of all and of open connections. */
  connections(): number;
  open(): number;
  /** Sets the status of responses to checks and requests. */
  answer(status: number): void;
  /** The requested paths and hosts. */
  requests: string[];
  close(): Promise<void>;
}

const all = new Set<Member>();

export async function closeMembers(): Promise<void> {
  for (const each of all) await each.close();
  all.clear();
}

async function listening(server: Server, state: { status: number; requests: string[] }, port = 0): Promise<Member> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  const made: Member = {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    open: () => sockets.size,
    answer: (status) => (state.status = status),
    requests: state.requests,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      all.delete(made);
    },
  };
  all.add(made);
  return made;
}

function respondWithName(name: string, state: { status: number; requests: string[] }) {
  return (message: IncomingMessage, response: import('node:http').ServerResponse) => {
    state.requests.push(`${message.method} ${message.url} ${message.headers.host ?? ''}`);
    const cookie = { 'set-cookie': `app=of-${name}; path=/` };
    const socket = message.socket as TLSSocket;
    const shown = socket.getPeerCertificate?.().subject?.CN ?? null;
    const reported = JSON.stringify({ name, headers: message.headers, url: message.url, shown });
    response.writeHead(state.status, message.url === '/login' ? cookie : {}).end(reported);
  };
}

export async function httpMember(name: string, port?: number): Promise<Member> {
  const state = { status: 200, requests: [] };
  return listening(createHttpServer({ keepAliveTimeout: 60_000 }, respondWithName(name, state)), state, port);
}

export async function httpsMember(name: string, pem: string, askFor?: string, more: TlsOptions = {}): Promise<Member> {
  const state = { status: 200, requests: [] };
  const client = askFor ? { requestCert: true, rejectUnauthorized: false, ca: askFor } : {};
  return listening(createHttpsServer({ cert: pem, key: pem, ...client, ...more }, respondWithName(name, state)), state);
}

/** Sends its name and a line feed, then echoes. */
export async function tcpMember(name: string): Promise<Member> {
  const greet = (socket: Socket) => {
    socket.write(`${name}\n`);
    socket.on('data', (part) => socket.write(part));
  };
  return listening(createServer(greet), { status: 200, requests: [] });
}

/** Sends back the first received bytes in hexadecimal, and closes. */
export async function firstBytesMember(): Promise<Member> {
  const answer = (socket: Socket) => socket.once('data', (part) => socket.end(part.toString('hex')));
  return listening(createServer(answer), { status: 200, requests: [] });
}

export async function udpMember(name: string): Promise<{ port: number; close(): void }> {
  const socket = createSocket('udp4');
  socket.on('message', (_, from) => socket.send(name, from.port, from.address));
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { port: socket.address().port, close: () => socket.close() };
}

/** The member that responds to a datagram to port 5353, each time from another port; null for none. */
export function askUdp(address: string, from?: string, timeoutMs = 500): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const done = (name: string | null) => {
      clearTimeout(timer);
      socket.close();
      resolve(name);
    };
    const timer = setTimeout(() => done(null), timeoutMs);
    socket.on('message', (text) => done(text.toString())).on('error', () => done(null));
    socket.bind({ port: 0, ...(from && { address: from }) }, () => socket.send('x', 5353, address));
  });
}

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  name: string | null;
  /** What the member saw. */
  seen: Record<string, string>;
  shown: string | null;
}

/** One request on a new connection. */
export function ask(address: string, headers: Record<string, string> = {}, path = '/', port = 80): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: address, port, path, headers, agent: false, timeout: 5_000 };
    const sent = request(options, (message) => {
      let text = '';
      message.setEncoding('utf8').on('data', (part: string) => (text += part));
      message.on('end', () => resolve(toAnswer(message, text))).on('error', reject);
    });
    sent
      .on('error', reject)
      .on('timeout', () => sent.destroy(new Error('timeout')))
      .end();
  });
}

function toAnswer(message: IncomingMessage, text: string): Answer {
  const { statusCode: status = 0, headers } = message;
  const reported = text.startsWith('{"name"') ? JSON.parse(text) : {};
  return { status, headers, name: reported.name ?? null, seen: reported.headers ?? {}, shown: reported.shown ?? null };
}

export interface Stream {
  socket: Socket;
  /** The first line from the member; null if the connection was closed before. */
  name: Promise<string | null>;
  echoes(text: string): Promise<boolean>;
  isOpen(): boolean;
}

export function stream(address: string, port = 80, localAddress?: string): Stream {
  const socket = createConnection({ host: address, port, ...(localAddress && { localAddress }) });
  socket.on('error', () => undefined);
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => (text += part));
  const closed = new Promise<null>((resolve) => socket.once('close', () => resolve(null)));
  const has = (what: string) =>
    new Promise<string>((resolve) => {
      const check = () => text.includes(what) && resolve(text.split('\n')[0] ?? '');
      socket.on('data', check);
      check();
    });
  return {
    socket,
    name: Promise.race([closed, has('\n')]),
    async echoes(what) {
      if (socket.destroyed) return false;
      socket.write(what);
      return (await Promise.race([closed, has(what)])) !== null;
    },
    isOpen: () => !socket.destroyed && !socket.readableEnded,
  };
}

export interface Authority {
  ca: string;
  /** Certificate and key in one PEM text. */
  issue(name: string): string;
  /** A list that revokes the certificates of these names. */
  revoke(...names: string[]): string;
}

export function authority(folder: string, name = 'authority'): Authority {
  const at = (file: string) => join(folder, `${name}-${file}`);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  mkdirSync(folder, { recursive: true });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', at('ca.key'), '-out', at('ca.pem'), '-subj', `/CN=${name}`, '-days', '9');
  writeFileSync(at('index'), '');
  writeFileSync(at('number'), '01\n');
  const lines = ['[ca]', 'default_ca=d', '[d]', `database=${at('index')}`, `crlnumber=${at('number')}`];
  writeFileSync(at('cnf'), [...lines, 'default_md=sha256', 'default_crl_days=9', ''].join('\n'));
  const own = ['-config', at('cnf'), '-keyfile', at('ca.key'), '-cert', at('ca.pem')];
  return {
    ca: readFileSync(at('ca.pem'), 'utf8'),
    issue(host) {
      openssl('req', ...key, '-keyout', at(`${host}.key`), '-out', at(`${host}.csr`), '-subj', `/CN=${host}`);
      writeFileSync(at(`${host}.ext`), `subjectAltName=DNS:${host}\n`);
      const signed = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at(`${host}.ext`)];
      openssl('x509', '-req', '-in', at(`${host}.csr`), ...signed, '-out', at(`${host}.crt`), '-days', '9');
      return readFileSync(at(`${host}.crt`), 'utf8') + readFileSync(at(`${host}.key`), 'utf8');
    },
    revoke(...names) {
      for (const host of names) openssl('ca', ...own, '-revoke', at(`${host}.crt`));
      openssl('ca', ...own, '-gencrl', '-out', at('crl.pem'));
      return readFileSync(at('crl.pem'), 'utf8');
    },
  };
}

/** The common name of the certificate that an address presents. */
export function certificateOf(address: string, servername?: string, port = 80): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const options = { host: address, port, rejectUnauthorized: false, ...(servername && { servername }) };
    const socket = connectTls(options, () => {
      resolve(socket.getPeerCertificate().subject.CN as string);
      socket.destroy();
    }).on('error', reject);
  });
}

/** A password as HAProxy and htpasswd files store it. */
export function crypt(password: string): string {
  return execFileSync('openssl', ['passwd', '-5', '-salt', 'abc', password], { encoding: 'utf8' }).trim();
}

/** One request over TLS, with the whole response as text. */
export function tlsAnswer(address: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connectTls({ host: address, port: 80, rejectUnauthorized: false }, () =>
      socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
    );
    socket
      .on('data', (part) => (text += String(part)))
      .on('end', () => resolve(text))
      .on('error', reject);
  });
}
