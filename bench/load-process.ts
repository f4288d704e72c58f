/**
 * The load generator for machines without wrk. On plain sockets, because Node's HTTP client would be slower than the
 * server it measures; so it understands only answers with a content-length.
 */
import { connect } from 'node:net';
import type { Load, Turn } from './load.ts';

const load = JSON.parse(process.argv[2]!) as Load;
const url = new URL(load.url);
const turns = load.turns ?? [{ path: url.pathname + url.search, headers: load.headers, body: load.body }];
const sent = turns.map(requestBytes);
let turn = 0;
const next = () => sent[turn++ % sent.length]!;
const began = performance.now();
const deadline = began + load.seconds * 1000;
let requests = 0;
let failures = 0;

await Promise.all(Array.from({ length: load.connections }, askUntilDeadline));
process.stdout.write(JSON.stringify({ requests, failures, seconds: (performance.now() - began) / 1000 }));

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

function askUntilDeadline(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname, () => socket.write(next()));
    let received = '';
    socket.setNoDelay(true).setEncoding('latin1').once('error', reject);
    socket.on('data', (chunk) => {
      received += chunk;
      if (!isWhole(received)) return;
      requests += 1;
      if (!received.startsWith('HTTP/1.1 2')) failures += 1;
      received = '';
      if (performance.now() < deadline) socket.write(next());
      else socket.end(resolve);
    });
  });
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(answer);
  return answer.length >= end + 4 + Number(length?.[1] ?? 0);
}
