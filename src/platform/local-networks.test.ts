import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../test/requires.ts';
import { localIpv4, localIpv6, localNetworks } from './local-networks.ts';

const fibTrie = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.0
              /8 host LOCAL
     +-- 172.17.0.0/16 2 0 2
        |-- 172.17.0.0
           /16 link UNICAST
        |-- 172.17.0.1
           /32 host LOCAL
        |-- 172.17.255.255
           /32 link BROADCAST
Local:
     |-- 10.64.0.0
        /16 host LOCAL
        |-- 172.17.0.1
           /32 host LOCAL
`;

const ipv6Route = `
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0
fd000000000000000000000000000002 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000003 00000000 80200001     eth0
fd640000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 80200001       lo
`;

describe('the local networks of this host', () => {
  it('are read from the routing tables: addresses and local routes', () => {
    expect(localIpv4(fibTrie)).toEqual(['127.0.0.0/8', '172.17.0.1/32', '10.64.0.0/16']);
    expect(localIpv6(ipv6Route)).toEqual([
      'fd00:0000:0000:0000:0000:0000:0000:0002/128',
      'fd64:0000:0000:0000:0000:0000:0000:0000/64',
    ]);
  });

  it('include loopback on every machine', () => expect(localNetworks()).toContain('127.0.0.1'));
});

const parts = ['root', 'iproute2', 'util-linux'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'in a separate network namespace', () => {
  it('include a bridge without members and a local route, which no interface lists', () => {
    const module = new URL('local-networks.ts', import.meta.url).href;
    const script = `import('${module}').then(({ localNetworks }) => console.log(localNetworks().join(' ')))`;
    const commands = [
      'ip link set lo up',
      'ip link add bridge0 type bridge',
      'ip address add 198.18.0.1/24 dev bridge0',
      'ip link set bridge0 up',
      'ip route add local 198.19.0.0/16 dev lo',
      `exec ${process.execPath} -e "${script}"`,
    ];
    const printed = execFileSync('unshare', ['--net', 'sh', '-ec', commands.join('\n')], { encoding: 'utf8' });
    expect(printed.trim().split(' ')).toEqual(expect.arrayContaining(['198.18.0.1/32', '198.19.0.0/16']));
  });
});
