/** Clients and members that attack load balancers, and what an attack costs. */
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { violationsOf } from '../../src/drivers/haproxy/validation.ts';
import { balancer } from '../../src/drivers/haproxy/test-host.ts';

/** A member that reads and never responds. */
export async function hangingMember(): Promise<{ port: number; open(): number; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('data', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    open: () => sockets.size,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

export async function countingUdpMember(): Promise<{ port: number; sessions(): number; close(): void }> {
  const ports = new Set<number>();
  const socket = createSocket('udp4').on('message', (_, { port }) => ports.add(port));
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { port: socket.address().port, sessions: () => ports.size, close: () => socket.close() };
}

/** Sends one datagram from a new port. */
export function sendOnce(address: string, from: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.bind(0, from, () => socket.send('x', 5353, address, () => socket.close(() => resolve())));
  });
}

/** Whether a datagram from a new port gets a response within 500 ms. */
export function udpAnswer(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const end = (answered: boolean) => {
      clearTimeout(timer);
      socket.close();
      resolve(answered);
    };
    const timer = setTimeout(() => end(false), 500);
    socket.on('message', () => end(true));
    socket.bind(0, () => socket.send('x', 5353, address));
  });
}

/** Opens one connection with `count` concurrent requests. */
export async function manyStreams(
  address: string,
  count: number,
  refused: { count: number },
): Promise<ClientHttp2Session> {
  const session = connectHttp2(`https://${address}`, { rejectUnauthorized: false });
  await new Promise<void>((resolve, reject) => session.once('connect', () => resolve()).once('error', reject));
  session.on('error', () => undefined);
  for (let at = 0; at < count; at += 1) {
    const sent = session.request({ ':path': '/' });
    sent.on('error', () => undefined);
    sent.on('response', (headers) => {
      if (headers[':status'] === 503) refused.count += 1;
    });
  }
  return session;
}

export function statusOf(address: string, agent: Agent, authorization: string, localAddress: string): Promise<number> {
  return new Promise((resolve) => {
    const sent = request(
      { host: address, agent, headers: { authorization }, localAddress, timeout: 20_000 },
      (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode ?? 0));
      },
    );
    sent.on('error', () => resolve(0)).on('timeout', () => sent.destroy());
    sent.end();
  });
}

export function basic(text: string): string {
  return `Basic ${Buffer.from(text).toString('base64')}`;
}

export function sha256Of(password: string): string {
  return execFileSync('openssl', ['passwd', '-5', '-salt', 'abc', password], { encoding: 'utf8' }).trim();
}

/** The most expensive hash that the driver accepts. */
export function costliestHash(): string {
  const byCost = [
    `$2b$10$${'a'.repeat(53)}`,
    `$5$rounds=10000$saltsalt$${'a'.repeat(43)}`,
    `$2b$06$${'a'.repeat(53)}`,
    `$5$rounds=5000$saltsalt$${'a'.repeat(43)}`,
  ];
  const hash = byCost.find(
    (each) => violationsOf(balancer({}, { users: [{ name: 'a', encryptedPassword: each }] })).length === 0,
  );
  if (!hash) throw new Error('the driver accepts none of the hashes');
  return hash;
}

export function childrenOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
}

export function workerPid(info: string): number {
  return Number(/^Pid: (\d+)/m.exec(info)?.[1]);
}

export function cpuSeconds(pid: number): number {
  const [, utime = 0, stime = 0] = /\) (?:\S+ ){11}(\d+) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
  return (Number(utime) + Number(stime)) / 100;
}
