/** Idle and malformed connections of one source to the port of the registries. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../until.ts';
import { openRegistryYard, type RegistryYard } from '../registry-yard.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const attacker = '127.0.0.2';

describe.skipIf(!requires('docker-registry'))(skipReason('docker-registry') ?? 'one source of connections', () => {
  let yard: RegistryYard;
  const sockets: Socket[] = [];

  /** Opens connections that send only `text`, and waits until each is open or refused. */
  const open = async (count: number, text: string) => {
    const opened = Array.from({ length: count }, () => {
      const socket = connect({ port: yard.port, host: '127.0.0.1', localAddress: attacker });
      socket.on('error', () => undefined);
      socket.once('connect', () => socket.write(text));
      sockets.push(socket.resume());
      return socket;
    });
    await until(() => opened.every((each) => !each.connecting), 60, 'all connections to be open or refused');
    return opened;
  };
  const alive = (list: Socket[]) => list.filter((each) => !each.destroyed && !each.readableEnded).length;
  /** Number of open connections from the attacker. */
  const held = () => {
    const from = '0200007F';
    const port = yard.port.toString(16).toUpperCase().padStart(4, '0');
    return readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .filter((line) => new RegExp(`: [0-9A-F]{8}:${port} ${from}:[0-9A-F]{4} 01 `).test(line)).length;
  };
  const neighbour = async () => (await yard.call('GET', '/v2/')).status;

  beforeAll(async () => {
    yard = await openRegistryYard();
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    yard?.cleanUp();
  });

  it('cannot hold more than its share while other sources are served', async () => {
    await open(3000, '');
    await until(() => held() <= 2000, 60, 'the surplus to be closed');
    expect(held()).toBeGreaterThan(500);
    for (let i = 0; i < 20; i += 1) expect(await neighbour()).toBe(401);
    await until(() => held() === 0, 90, 'idle connections to be closed');
  });

  it('cannot keep connections open with endless headers', async () => {
    const slow = await open(500, 'GET /v2/ HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    const trickle = setInterval(() => slow.forEach((each) => each.destroyed || each.write('x')), 1000);
    try {
      for (let i = 0; i < 20; i += 1) expect(await neighbour()).toBe(401);
      await until(() => alive(slow) === 0, 90, 'the slow connections to be closed');
    } finally {
      clearInterval(trickle);
    }
  });

  it('gets an HTTP response to a TLS handshake, from which clients conclude that they must use HTTP', async () => {
    const handshake = Buffer.from('16030100f4010000f00303', 'hex').toString('latin1');
    expect(await exchange(yard.port, handshake)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('cannot bypass the gate: distribution listens on no port', () => {
    const pid = readFileSync(join(yard.layout.distribution, 'distribution.pid'), 'utf8').trim();
    const sockets = readFileSync('/proc/net/tcp', 'utf8') + readFileSync('/proc/net/tcp6', 'utf8');
    const listening = sockets.split('\n').flatMap((line) => (/ 0A /.test(line) ? [line.trim().split(/\s+/)[9]] : []));
    expect(socketsOf(pid).filter((inode) => listening.includes(inode))).toEqual([]);
  });

  it('cannot end the gate with a request whose host distribution refuses', async () => {
    const pid = () => readFileSync(join(yard.layout.distribution, 'gate.pid'), 'utf8');
    const before = pid();
    const blob = `GET /v2/app-1/a/blobs/sha256:${'0'.repeat(64)}`;
    for (const text of [`${blob} HTTP/1.0\r\n\r\n`, `${blob} HTTP/1.1\r\nHost: a b\r\n\r\n`]) {
      expect(await exchange(yard.port, text)).toMatch(/^HTTP\/1\.1 400 /);
      expect(await neighbour()).toBe(401);
    }
    expect(pid()).toBe(before);
  });

  it('gets a response to a request for a blob with a body, so that no connection to distribution is left open', async () => {
    const text = `GET /v2/app-1/a/blobs/sha256:${'0'.repeat(64)} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345`;
    expect(await exchange(yard.port, text)).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('cannot start many requests at once by pipelining them', async () => {
    const pipelined = async (count: number) => {
      const text = 'GET /v2/ HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count);
      return (await exchange(yard.port, text)).match(/^HTTP\/1\.1 401 /gm)?.length ?? 0;
    };
    expect(await pipelined(10)).toBe(10);
    expect(await pipelined(2000)).toBeLessThan(16);
  });

  it.each(['gzip, chunked', 'identity, chunked', 'gzip\r\nTransfer-Encoding: chunked'])(
    'gets 501 for the transfer codings %j',
    async (codings) => {
      for (const line of ['POST /v2/app-1/a/blobs/uploads/', 'GET /v2/']) {
        const head = `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: ${codings}\r\n\r\n`;
        const answer = await exchange(yard.port, `${head}2\r\n{}\r\n0\r\n\r\n`);
        expect(answer).toMatch(/^HTTP\/1\.1 501 [^]*"UNSUPPORTED","message":"Transfer-Encoding must be chunked; /);
      }
    },
  );

  it.each(['chunked', ', Chunked'])('may use the transfer coding %j', async (coding) => {
    const head = 'POST /v2/app-1/a/blobs/uploads/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n';
    expect(await exchange(yard.port, `${head}Transfer-Encoding: ${coding}\r\n\r\n2\r\n{}\r\n0\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 401 /,
    );
  });

  it('cannot smuggle a second request past the gate', async () => {
    const first = 'POST /v2/ HTTP/1.1\r\nHost: x\r\n';
    for (const [attack, text] of Object.entries({
      'two lengths': `${first}Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345`,
      'a length and chunks': `${first}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      'odd chunks': `${first}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
      'a folded header': `${first}Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
    })) {
      const answers = await exchange(yard.port, `${text}GET /v2/_catalog HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect([attack, answers.match(/HTTP\/1\.1 (?!400|404|405)\d+/g)]).toEqual([attack, null]);
    }
  });
});

/** Inodes of the open sockets of a process. */
function socketsOf(pid: string): string[] {
  const folder = `/proc/${pid}/fd`;
  const links = readdirSync(folder).map((fd) => readlinkSync(join(folder, fd)));
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
}

/** Sends a text. Returns all that is received until the connection is closed or idle for two seconds. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'));
    socket.setTimeout(2000, () => socket.destroy());
    socket.on('data', (part) => (answer += part.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });
}
