/** The operations of hosts. */
import { Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import { operatorAdmin } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { hostNamePattern } from '../../platform/settings.ts';
import { Host, HostCollection, ListHosts } from './schema.ts';
import type { Hosts } from './service.ts';

const HostName = Type.String({
  pattern: pattern(hostNamePattern.source, 'the name of a host: letters, digits, `.` and `-`'),
  maxLength: 63,
  description: 'Name of the host',
  examples: ['host-1'],
});
const operation = operationsOf(
  {
    name: 'Hosts',
    description: 'The hosts of regions that have several. Their agents follow the state that the operator sets.',
  },
  { host_name: HostName },
);
const all = '/cloudyard/v1/hosts';
const one = `${all}/:region_id/:host_name` as const;

export const hostOperations = ({ hosts }: { hosts: Hosts }) => [
  operation('GET', all, {
    id: 'listHosts',
    summary: 'List hosts',
    description: 'Ordered by region and name. Regions of one host have none.',
    access: operatorAdmin,
    query: ListHosts,
    response: HostCollection,
    handle: ({ query }) => hosts.list(query),
  }),
  operation('GET', one, {
    id: 'getHost',
    summary: 'Get a host',
    access: operatorAdmin,
    response: Host,
    handle: ({ params }) => hosts.get(params.region_id, params.host_name),
  }),
  operation('POST', `${one}/drain`, {
    id: 'drainHost',
    summary: 'Drain a host',
    description:
      'Its addresses and NFS groups move to other hosts, one group at a time. It stays drained until it is undrained.',
    access: operatorAdmin,
    response: Host,
    handle: ({ by, params }) => hosts.drain(by, params.region_id, params.host_name),
  }),
  operation('POST', `${one}/undrain`, {
    id: 'undrainHost',
    summary: 'Undrain a host',
    description: 'It takes addresses and NFS groups again.',
    access: operatorAdmin,
    response: Host,
    handle: ({ by, params }) => hosts.undrain(by, params.region_id, params.host_name),
  }),
  operation('DELETE', one, {
    id: 'forgetHost',
    summary: 'Forget a host',
    description: 'Only when its lease has ended. An agent that starts again under this name joins as a new host.',
    access: operatorAdmin,
    handle: ({ by, params }) => hosts.forget(by, params.region_id, params.host_name),
  }),
];
