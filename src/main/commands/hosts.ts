/** The commands `host list`, `drain`, `undrain` and `forget`. `host --region N` runs the agent (list.ts). */
import type { Host } from '../../resources/hosts/schema.ts';
import type { Settings } from '../settings.ts';
import { command, type Command } from '../command-line.ts';
import { idNumber, print, printTable, withServices } from './with-services.ts';

const list = command({
  name: 'host list',
  summary: 'List the hosts of regions of several hosts',
  run: (settings) =>
    withServices(settings, async ({ hosts }) => {
      const { results } = await hosts.list({ limit: Number.MAX_SAFE_INTEGER });
      if (results.length === 0) return print('No region has several hosts.');
      const head = ['region', 'name', 'address', 'state', 'lease', 'converged', 'pending changes', 'held groups'];
      printTable([head, ...results.map(rowOf)]);
    }),
});

const rowOf = (host: Host): unknown[] => [
  ...[host.region_id, host.name, host.address, host.state, host.lease_valid ? 'valid' : `ended ${host.lease_until}`],
  ...[host.converged ? 'yes' : 'no', host.pending_changes, host.held_groups.join(' ') || '–'],
];

const change = (action: 'drain' | 'undrain' | 'forget', summary: string, done: string) =>
  command({
    name: `host ${action}`,
    operands: 'REGION NAME',
    summary,
    async run(settings: Settings, _options, [region = '', name = '']) {
      const regionId = idNumber('REGION', region);
      await withServices(settings, async ({ hosts }) => {
        await hosts.byCommand(action, regionId, name);
        print(`host ${name} of region ${region} ${done}`);
      });
    },
  });

export const hostCommands: Command[] = [
  list,
  change('drain', 'Move everything that a host serves to other hosts', 'drains'),
  change('undrain', 'Let a drained host serve again', 'serves again'),
  change('forget', 'Remove a host whose lease has ended', 'is forgotten'),
];
