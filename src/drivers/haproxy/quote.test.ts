/** No text of a customer can break out of its quotes: HAProxy and nginx report what they loaded. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { requires } from '../../../test/requires.ts';
import { DriverError } from '../driver.ts';
import type { DesiredLoadBalancer } from '../load-balancer.ts';
import { renderNginx } from '../nginx/configuration.ts';
import { until } from '../../../test/until.ts';
import { verifiedTable } from './authentication.ts';
import { renderBalancer } from './configuration.ts';
import { limitTables } from './limits.ts';
import { layoutOf } from './layout.ts';
import * as quote from './quote.ts';
import { runtimeSocket } from './runtime-socket.ts';
import { balancer, listener, member, monitor } from './test-host.ts';
import { violationsOf } from './validation.ts';

const HOSTILE = [
  '\n',
  '\r\n',
  '\0',
  '"',
  "'",
  '\\',
  ';',
  '#',
  '$',
  '${PATH}',
  '%',
  '%[src]',
  '`',
  ' ',
  '\t',
  '{',
  '}',
  '(',
  ')',
  ',',
  '\n  server evil 127.0.0.1:1',
  "' #",
  '\\x0a',
  "'\\''",
  '\nbackend evil\n',
  '" ; } #',
  '<<',
  '@1',
  '\u2028',
  'é',
  '\ud800',
];
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'binary', maxLength: 4 })), {
    minLength: 1,
    maxLength: 6,
  })
  .map((parts) => parts.join(''));
const or = <T>(sane: T) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(sane) }, { weight: 1, arbitrary: hostile as fc.Arbitrary<T> });

/** A load balancer with hostile text in any of its strings. */
const anything: fc.Arbitrary<DesiredLoadBalancer> = fc
  .record({
    address: or('127.77.7.7'),
    id: or('2580e0b0-1f6f-4266-b1d7-fe893a76cbf0'),
    name: or('user'),
    password: or(`$5$a$${'b'.repeat(43)}`),
    network: or('10.0.0.0/8'),
    cookie: or('sid'),
    path: or('/'),
    domain: or('example.com'),
    codes: or('200'),
    method: or('GET'),
    memberAddress: or('127.0.0.1'),
    monitorAddress: or('127.0.0.2'),
    memberId: or('2580e0b0-1f6f-4266-b1d7-fe893a76cbf1'),
    poolId: or('2580e0b0-1f6f-4266-b1d7-fe893a76cbf2'),
    listenerId: or('2580e0b0-1f6f-4266-b1d7-fe893a76cbf3'),
    app: fc.boolean(),
  })
  .map((text) => ({
    ...balancer(
      {
        id: text.poolId,
        members: [member(80, { id: text.memberId, address: text.memberAddress, monitorAddress: text.monitorAddress })],
        monitor: monitor({
          type: 'HTTP',
          urlPath: text.path,
          domainName: text.domain,
          expectedCodes: text.codes,
          httpMethod: text.method,
        }),
        persistence: text.app
          ? { type: 'APP_COOKIE', cookieName: text.cookie, timeoutSeconds: null, granularity: null }
          : { type: 'SOURCE_IP', cookieName: null, timeoutSeconds: null, granularity: null },
      },
      {
        id: text.listenerId,
        allowedNetworks: [text.network],
        users: [{ name: text.name, encryptedPassword: text.password }],
      },
    ),
    address: text.address,
    id: text.id,
  }));

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-quote-'));
const layout = layoutOf(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Null if it is rejected, which is also safe. */
function rendered(desired: DesiredLoadBalancer): string | null {
  try {
    return renderBalancer(desired, layout, 8_000).text;
  } catch (err) {
    if (err instanceof DriverError && !err.retryable) return null;
    throw err;
  }
}

function withGlobal(text: string, socket: string): string {
  const peers = `peers cloudyard\n  peer local unix@${folder}/peers.sock\n`;
  const tables = `${limitTables(8_000)}${verifiedTable}`;
  return `global\n  localpeer local\n  stats socket unix@${socket} level admin\n${peers}${tables}${text}`;
}

describe('the runtime socket', () => {
  it('rejects words that could end a command', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        fc.pre(!/^[\w./@+:,[\]-]+$/.test(text));
        expect(() => quote.command('set', 'server', text)).toThrow(DriverError);
      }),
    );
  });
});

describe('checks', () => {
  it('report everything that rendering would reject', () => {
    fc.assert(
      fc.property(anything, (desired) => {
        if (violationsOf(desired).length === 0) expect(rendered(desired)).not.toBeNull();
      }),
      { numRuns: 2_000 },
    );
  });
});

describe.skipIf(!requires('haproxy'))('HAProxy', () => {
  it('accepts every rendered configuration', () => {
    fc.assert(
      fc.property(anything, (desired) => {
        const text = rendered(desired);
        fc.pre(text !== null);
        const file = join(folder, 'check.cfg');
        writeFileSync(file, withGlobal(text ?? '', join(folder, 'x.sock')));
        execFileSync('haproxy', ['-c', '-q', '-f', file], { stdio: 'pipe' });
      }),
      { numRuns: 60 },
    );
  }, 120_000);

  it('loads one listener, one pool, one member, and nothing else', async () => {
    const free = fc.record({ name: hostile, password: hostile, path: hostile.map((text) => `/${text}`) });
    await fc.assert(
      fc.asyncProperty(free, async ({ name, password, path }) => {
        const users = [{ name, encryptedPassword: password }];
        const monitored = monitor({ type: 'HTTP', urlPath: path });
        const desired = balancer({ members: [member(80)], monitor: monitored }, { users, port: 18_088 });
        const text = rendered(desired);
        fc.pre(text !== null);
        const names = await understood(withGlobal(text ?? '', join(folder, 'structure.sock')));
        const [front, back] = [`listener_${desired.listeners[0]!.id}`, `pool_${desired.pools[0]!.id}`];
        const server = `${back}/member_${desired.pools[0]!.members[0]!.id}`;
        expect(names.filter((each) => !each.startsWith('cloudyard_'))).toEqual(
          [`${front}/FRONTEND`, `${back}/BACKEND`, server].sort(),
        );
      }),
      { numRuns: 25 },
    );
  }, 120_000);

  async function understood(text: string): Promise<string[]> {
    const socket = join(folder, 'structure.sock');
    const file = join(folder, 'structure.cfg');
    writeFileSync(file, text);
    const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
    const ask = runtimeSocket(socket);
    try {
      let answer = '';
      await until(
        () =>
          ask(['show stat']).then(
            (csv) => (answer = csv),
            () => '',
          ),
        5,
        'HAProxy answers',
      );
      const lines = answer.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      return lines.map((line) => line.split(',').slice(0, 2).join('/')).sort();
    } finally {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
      rmSync(socket, { force: true });
    }
  }
});

describe.skipIf(!requires('nginx'))('nginx', () => {
  it('accepts every rendered configuration', () => {
    const texts = fc.record({
      network: or('10.0.0.0/8'),
      memberAddress: or('127.0.0.1'),
      id: or('2580e0b0-1f6f-4266-b1d7-fe893a76cbf0'),
    });
    const nginx = join(folder, 'nginx');
    mkdirSync(nginx, { recursive: true });
    const settings = {
      state: nginx,
      streamModule: '/usr/lib/nginx/modules/ngx_stream_module.so',
      sessions: 1_000,
    };
    fc.assert(
      fc.property(texts, ({ network, memberAddress, id }) => {
        const made = balancer({ protocol: 'UDP', members: [member(53, { address: memberAddress })] });
        const front = listener({ id, protocol: 'UDP', allowedNetworks: [network], defaultPoolId: made.pools[0]!.id });
        let text: string | null = null;
        try {
          text = renderNginx(settings, [{ ...made, listeners: [front] }], () => undefined);
        } catch (err) {
          expect(err).toBeInstanceOf(DriverError);
        }
        fc.pre(text !== null);
        writeFileSync(join(nginx, 'nginx.conf'), text ?? '');
        execFileSync('nginx', ['-t', '-q', '-p', nginx, '-e', 'stderr', '-c', join(nginx, 'nginx.conf')], {
          stdio: 'pipe',
        });
      }),
      { numRuns: 25 },
    );
  });
});
