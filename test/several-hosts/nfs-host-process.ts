/** The file shares of one host, in a process of its own in the namespace of the host; nfs-hosts.ts calls it. */
import { parseArgs } from 'node:util';
import { createCephBridge } from '../../src/drivers/ceph/bridge.ts';
import { createNfsPart } from '../../src/drivers/nfs-groups/part.ts';
import type { PublishedShare } from '../../src/drivers/nfs-groups/share-state.ts';
import type { RegionView } from '../../src/hosts/part.ts';
import { createLogger } from '../../src/platform/log.ts';
import { type Channel, openCalls } from '../../src/platform/process-calls.ts';

const { values } = parseArgs({ options: { data: { type: 'string' }, conf: { type: 'string' } } });
const log = createLogger({ level: 'info', pretty: false });
const connect = () => createCephBridge({ conf: values.conf!, user: 'admin', log });
const part = createNfsPart({ dataDir: values.data!, connect, port: 2049, log });
const signal = new AbortController().signal;

openCalls(process as Channel, {
  async start({ region, states }: { region: RegionView; states: [string, PublishedShare][] }) {
    await part.start(region);
    await part.converge(new Map(states), signal);
    await part.serve();
  },
  apply: ({ id, state }: { id: string; state: PublishedShare | null }) => part.apply(id, state, signal),
  hostsChanged: (region: RegionView) => part.hostsChanged(region),
  drain: () => part.drain(signal),
  serve: () => part.serve(),
  stopServing: () => part.stopServing(),
  status: () => ({ holds: part.heldGroups!(), ...part.status() }),
});
process.once('disconnect', () => process.exit());
