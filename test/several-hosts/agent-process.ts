/**
 * The agent of a host as a process of its own, for tests that kill it. Its part keeps each state in a file, as a data plane
 * that outlives the agent does. Arguments: connection (JSON), key (base64), data directory, name, seconds of the lease.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startAgent } from '../../src/hosts/agent.ts';
import type { HostPart } from '../../src/hosts/part.ts';
import { connect } from '../../src/platform/db.ts';
import { createKeyring } from '../../src/platform/encryption.ts';
import { createListener } from '../../src/platform/listener.ts';
import { createLogger } from '../../src/platform/log.ts';

const [connection = '', key = '', dataDir = '', name = '', leaseSeconds = ''] = process.argv.slice(2);
const log = createLogger({ level: 'info', pretty: false });
const db = connect({ ...JSON.parse(connection), poolSize: 2, log });
const folder = join(dataDir, 'world');
mkdirSync(folder, { recursive: true });

const apply = async (id: string, state: unknown) => {
  if (state === null) rmSync(join(folder, id), { force: true });
  else writeFileSync(join(folder, id), JSON.stringify(state));
};
const part: HostPart = {
  ...{ kind: 'load_balancer', title: 'load balancers' },
  start: async () => undefined,
  async converge(states) {
    for (const id of readdirSync(folder)) if (!states.has(id)) await apply(id, null);
    for (const [id, state] of states) await apply(id, state);
    return new Map();
  },
  apply,
  serve: async () => undefined,
  hostsChanged: async () => undefined,
  async stopServing() {
    for (const id of readdirSync(folder)) await apply(id, null);
  },
  release: async () => undefined,
  drain: async () => undefined,
  status: () => ({ driver: 'files', real: false, healthy: true, detail: folder }),
};

const agent = await startAgent({
  ...{ db, listener: createListener({ db, log }), log, dataDir, name, interface: null },
  // h1, h2, …: each host has another address.
  address: `127.0.0.${name!.slice(1)}`,
  ...{ keyring: createKeyring([{ id: 'test', key: Buffer.from(key, 'base64') }]), version: 'test', parts: [part] },
  region: {
    ...{ regionId: 1, vipRange: null, vipRangeV6: null, storage: null },
    settings: {
      ...{ nfsAddresses: [], apiAddress: null, registryAddress: null, addressGroups: 1, virtualRouterId: 1 },
      leaseSeconds: Number(leaseSeconds),
    },
  },
  onFatal(error) {
    log.fatal({ err: error }, 'the agent stops');
    process.exit(1);
  },
});
process.once('SIGTERM', () => void agent.stop('keepDataPlanes').then(() => process.exit(0)));
