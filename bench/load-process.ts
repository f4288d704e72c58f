/**
 * The load generator for machines without wrk, and for steady rates. It uses plain sockets, because Node's HTTP client is
 * slower than the server, and supports only responses with a content-length or without a body.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Load, Turn } from './load.ts';

const load = JSON.parse(process.argv[2]!) as Load & { perSecond?: number };
const url = new URL(load.url);
const turns = load.turns ?? [{ path: url.pathname + url.search, headers: load.headers, body: load.body }];
const inTurn = turns.map(requestBytes);
let turn = 0;
const nextRequest = () => inTurn[turn++ % inTurn.length]!;
const began = performance.now();
const deadline = began + load.seconds * 1000;
let requests = 0;
let failures = 0;
const latencies: number[] = [];
/** Timers of a millisecond end within this time on an idle machine. */
const timerMs = 3;

if (load.perSecond === undefined) await Promise.all(Array.from({ length: load.connections }, sendUntilDeadline));
else await sendAtRate(load.perSecond);
const seconds = (performance.now() - began) / 1000;
process.stdout.write(JSON.stringify({ requests, failures, seconds, latencies }));

function requestBytes(of: Turn): Buffer {
  const body = of.body === undefined ? '' : JSON.stringify(of.body);
  const fields = {
    host: url.host,
    ...of.headers,
    ...(body && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
  };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${load.method} ${of.path} HTTP/1.1\r\n${head.join('')}\r\n${body}`);
}

/** Opens a connection. Calls `answered` for every complete response. */
function open(answered: (socket: Socket) => void): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname, () => resolve(socket));
    let received = '';
    socket.setNoDelay(true).setEncoding('latin1').once('error', reject);
    socket.on('data', (chunk) => {
      received += chunk;
      if (!isComplete(received)) return;
      requests += 1;
      if (!received.startsWith('HTTP/1.1 2')) failures += 1;
      received = '';
      answered(socket);
    });
  });
}

function sendUntilDeadline(): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (socket: Socket) => {
      if (performance.now() < deadline) socket.write(nextRequest());
      else socket.end(resolve);
    };
    open(next).then(next, reject);
  });
}

/** Sends at a steady rate. Latency includes waiting for a free connection. */
async function sendAtRate(perSecond: number): Promise<void> {
  const due = new Map<Socket, number>();
  const free: Socket[] = [];
  const total = Math.floor(load.seconds * perSecond);
  let sent = 0;
  const send = () => {
    const now = performance.now();
    for (; sent < total && free.length > 0; sent++) {
      const dueAt = start + (sent * 1000) / perSecond;
      if (dueAt > now) return;
      const socket = free.pop()!;
      due.set(socket, dueAt);
      socket.write(nextRequest());
    }
  };
  const answered = (socket: Socket) => {
    latencies.push(performance.now() - due.get(socket)!);
    free.push(socket);
    send();
  };
  free.push(...(await Promise.all(Array.from({ length: load.connections }, () => open(answered)))));
  const sockets = [...free];
  const start = performance.now();
  while (latencies.length < total) {
    send();
    const dueInMs = start + (sent * 1000) / perSecond - performance.now();
    // Sleeps between requests, because the server needs the processor. Node's timers are some milliseconds late.
    await (sent === total || free.length === 0 || dueInMs > timerMs
      ? sleep(1)
      : new Promise((resolve) => setImmediate(resolve)));
  }
  for (const socket of sockets) socket.end();
}

function isComplete(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(answer);
  return answer.length >= end + 4 + Number(length?.[1] ?? 0);
}
