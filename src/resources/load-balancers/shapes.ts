/** Shapes that load balancers, listeners, pools and members share. */
import { type Static, Type } from 'typebox';
import { Component, Described, FieldsOf, Named, Nullable } from '../../http/shapes.ts';

export const OperatingStatus = Type.Enum(['DEGRADED', 'DRAINING', 'ERROR', 'NO_MONITOR', 'OFFLINE', 'ONLINE'], {
  title: 'LoadBalancerOperatingStatus',
  description:
    'Health as the proxy sees it. `ONLINE`: works; `DEGRADED`: some members fail; `ERROR`: all active members fail; ' +
    '`NO_MONITOR`: works, but health is not checked; `DRAINING`: gets no new connections; `OFFLINE`: disabled, or not ' +
    'on the host',
});
export type OperatingStatus = Static<typeof OperatingStatus>;

export const ProvisioningStatus = Type.Enum(
  ['ACTIVE', 'DELETED', 'ERROR', 'PENDING_CREATE', 'PENDING_DELETE', 'PENDING_UPDATE'],
  {
    title: 'LoadBalancerProvisioningStatus',
    description:
      'Whether the host has the requested configuration. `ACTIVE`: it has; `PENDING_…`: a task is changing it; ' +
      '`ERROR`: the last task failed; `DELETED` is never used',
  },
);
export type ProvisioningStatus = Static<typeof ProvisioningStatus>;

export const statuses = { operating_status: OperatingStatus, provisioning_status: ProvisioningStatus };

/** Members and health monitors have no provisioning of their own. */
export const statusesOfPoolPart = {
  operating_status: OperatingStatus,
  provisioning_status: Described(ProvisioningStatus, 'Provisioning status of the pool'),
};

export const Stats = Component(
  'LoadBalancerStats',
  {
    active_connections: Type.Integer({ description: 'Number of open connections' }),
    bytes_in: Type.Integer({ description: 'Bytes received from clients' }),
    bytes_out: Type.Integer({ description: 'Bytes sent to clients' }),
    request_errors: Type.Integer({ description: 'Number of invalid or rejected requests' }),
    total_connections: Type.Integer({ description: 'Number of connections since the creation' }),
  },
  'Traffic counters, read from the proxy every 10 seconds',
);
export type Stats = Static<typeof Stats>;

export const StatsOrNull = Described(
  Nullable(Stats),
  'Traffic counters, read from the proxy every 10 seconds; null without `show_stats`',
);

export const ShowStats = Type.Optional(
  Type.Boolean({ default: false, description: 'Whether to return traffic counters in `stats`' }),
);

export const Port = Type.Integer({ minimum: 1, maximum: 65535, description: 'Port number' });

const Timeout = Nullable(Type.Integer({ minimum: 0, maximum: 86_400_000 }));
const StoredTimeout = Nullable(Type.Integer());

type TimeoutName = 'timeout_client_data' | 'timeout_member_connect' | 'timeout_member_data';

const timeoutMeanings: Record<TimeoutName, string> = {
  timeout_client_data: 'Time without data from the client after which the connection is closed, in milliseconds',
  timeout_member_connect: 'Time limit for connecting to a member, in milliseconds',
  timeout_member_data: 'Time without data from the member after which the connection is closed, in milliseconds',
};

const timeoutTitles: Record<TimeoutName, string> = {
  timeout_client_data: 'ClientDataTimeout',
  timeout_member_connect: 'MemberConnectTimeout',
  timeout_member_data: 'MemberDataTimeout',
};

/** The Terraform provider sends 0 for no timeout. */
const timeoutsOf = (owner: 'Listener' | 'LbPool', defaults: Record<TimeoutName, string>) => {
  const describe = (value: string, name: TimeoutName) => `${timeoutMeanings[name]}; null or 0: ${value}`;
  return {
    input: FieldsOf(defaults, (value, name) =>
      Type.Optional(Named(`${owner}${timeoutTitles[name]}`, Timeout, describe(value, name))),
    ),
    output: FieldsOf(defaults, (value, name) => Described(StoredTimeout, describe(value, name))),
  };
};

export const listenerTimeouts = timeoutsOf('Listener', {
  timeout_client_data: 'that of the pool, or 50,000',
  timeout_member_connect: '5,000; the timeout of the pool takes precedence',
  timeout_member_data: '50,000; the timeout of the pool takes precedence',
});

export const poolTimeouts = timeoutsOf('LbPool', {
  timeout_client_data: '50,000; the timeout of the listener takes precedence',
  timeout_member_connect: 'that of the listener, or 5,000',
  timeout_member_data: 'that of the listener, or 50,000',
});
