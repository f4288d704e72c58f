/**
 * Resources of the official Terraform provider `G-Core/gcore`, version 0.34, as far as this API creates them. Source: its
 * docs/resources. A test parses what is written and compares it with the same facts.
 */
import { isObject, type Json, type JsonObject } from './request.ts';

/** Which fields become attributes and which become nested blocks. Any other field cannot be expressed. */
export interface Shape {
  attributes: string[];
  blocks?: Record<string, Shape>;
  /** Values that equal those of an omitted field, which the provider lacks. */
  defaults?: JsonObject;
  /** Fields that follow from others. */
  implied?: string[];
}

/** Thrown for a field of the request that the provider lacks. */
export class Inexpressible extends Error {}

export interface Resource extends Shape {
  type: string;
  /** Renames and restructures the body of the request. */
  prepare?(body: JsonObject): JsonObject;
  /** A list in the body whose items are resources. They refer to their parents by `idField`. */
  child?: { field: string; resource: Resource };
  idField?: string;
}

const words = (text: string) => text.split(' ');

/** The API takes tags under both names. Both at once cannot be expressed. */
const renameTags =
  (name: string) =>
  ({ tags, metadata, ...rest }: JsonObject): JsonObject =>
    tags && metadata ? { ...rest, tags, metadata } : { ...rest, [name]: tags ?? metadata };

const withMetadataMap = renameTags('metadata_map');

const duration: Shape = { attributes: words('weeks days hours minutes') };
const cronFields = words('timezone week day_of_week month day hour minute');
const healthMonitor = 'type delay max_retries timeout max_retries_down url_path http_method expected_codes';

const fileShare: Resource = {
  type: 'gcore_file_share',
  attributes: words('name protocol size type_name tags'),
  blocks: {
    network: { attributes: words('network_id subnet_id') },
    access: { attributes: words('ip_address access_mode') },
    share_settings: { attributes: words('allowed_characters path_length root_squash') },
  },
  prepare({ volume_type, type_name, share_settings, ...rest }) {
    const type = type_name ?? (volume_type === 'vast_share_type' ? 'vast' : 'standard');
    const fields = renameTags('tags')({ ...rest, type_name: type });
    if (type === 'vast') return share_settings === undefined ? fields : { ...fields, share_settings };
    // The provider sends the settings of vast shares only.
    if (isObject(share_settings) && share_settings['root_squash'] === true) throw new Inexpressible('share_settings');
    return fields;
  },
};

const member: Resource = {
  type: 'gcore_lbmember',
  attributes: words('pool_id address protocol_port weight subnet_id instance_id'),
  defaults: { admin_state_up: true, backup: false },
};

const pool: Resource = {
  type: 'gcore_lbpool',
  idField: 'pool_id',
  attributes: words('loadbalancer_id listener_id name protocol lb_algorithm'),
  blocks: {
    health_monitor: { attributes: words(healthMonitor), defaults: { admin_state_up: true } },
    session_persistence: { attributes: words('type cookie_name persistence_granularity persistence_timeout') },
  },
  prepare: ({ healthmonitor, ...rest }) => withLoadBalancerId({ ...rest, health_monitor: healthmonitor }),
  child: { field: 'members', resource: member },
};

const listener: Resource = {
  type: 'gcore_lblistener',
  idField: 'listener_id',
  attributes: words(
    'loadbalancer_id name protocol protocol_port allowed_cidrs connection_limit insert_x_forwarded secret_id ' +
      'sni_secret_id timeout_client_data timeout_member_connect timeout_member_data',
  ),
  blocks: { user_list: { attributes: words('username encrypted_password') } },
  prepare({ allowed_cidrs, ...rest }) {
    if (!Array.isArray(allowed_cidrs)) return withLoadBalancerId(rest);
    // The provider omits an empty list from its request. It allows nobody, and an omitted one everyone.
    if (allowed_cidrs.length === 0) throw new Inexpressible('allowed_cidrs');
    return withLoadBalancerId({ ...rest, allowed_cidrs: allowed_cidrs.map(withPrefix) });
  },
  child: { field: 'pools', resource: pool },
};

const loadBalancer: Resource = {
  type: 'gcore_loadbalancerv2',
  idField: 'loadbalancer_id',
  attributes: words(
    'name flavor preferred_connectivity vip_ip_family vip_network_id vip_subnet_id vip_port_id metadata_map',
  ),
  prepare: withMetadataMap,
  child: { field: 'listeners', resource: listener },
};

const volume: Resource = {
  type: 'gcore_volume',
  attributes: words('name size type_name image_id snapshot_id metadata_map'),
  // The identifier of a snapshot or an image shows it.
  implied: ['source'],
  prepare(body) {
    const fields = withMetadataMap(body);
    return body['source'] === 'new-volume' ? { type_name: 'standard', ...fields } : fields;
  },
};

const snapshot: Resource = {
  type: 'gcore_snapshot',
  attributes: words('name volume_id description metadata'),
  prepare: renameTags('metadata'),
};

const network: Resource = {
  type: 'gcore_network',
  attributes: words('name type create_router metadata_map'),
  prepare: withMetadataMap,
};

const subnet: Resource = {
  type: 'gcore_subnet',
  attributes: words(
    'name cidr network_id enable_dhcp dns_nameservers gateway_ip connect_to_network_router metadata_map',
  ),
  blocks: { host_routes: { attributes: words('destination nexthop') } },
  // The CIDR shows it.
  implied: ['ip_version'],
  prepare(body) {
    const fields = withMetadataMap(body);
    return fields['gateway_ip'] === null ? { ...fields, gateway_ip: 'disable' } : fields;
  },
};

const secret: Resource = {
  type: 'gcore_secret',
  attributes: words('name private_key certificate certificate_chain expiration'),
  prepare({ payload, expiration, ...rest }) {
    const flat = { ...rest, ...(isObject(payload) ? payload : {}) };
    return typeof expiration === 'string' ? { ...flat, expiration: withoutZone(expiration) } : flat;
  },
};

const lifecyclePolicy: Resource = {
  type: 'gcore_lifecyclepolicy',
  attributes: words('name status action'),
  blocks: {
    volume: { attributes: ['id'] },
    schedule: {
      attributes: words('max_quantity resource_name_template'),
      blocks: { retention_time: duration, cron: { attributes: cronFields }, interval: duration },
    },
  },
  prepare: ({ volume_ids, schedules, ...rest }) => ({
    ...rest,
    volume: listOf(volume_ids).map((id) => ({ id })),
    schedule: listOf(schedules).map(scheduleOf),
  }),
};

/** The resources by the operation that creates them. */
export const resources: Record<string, Resource> = {
  addLbPoolMember: member,
  createFileShare: fileShare,
  createLbPool: pool,
  createLbPoolMember: member,
  createLifecyclePolicy: lifecyclePolicy,
  createListener: listener,
  createLoadBalancer: loadBalancer,
  createNetwork: network,
  createSecret: secret,
  createSnapshot: snapshot,
  createSubnet: subnet,
  createVolume: volume,
};

function withLoadBalancerId({ load_balancer_id, loadbalancer_id, ...rest }: JsonObject): JsonObject {
  return { loadbalancer_id: loadbalancer_id ?? load_balancer_id, ...rest };
}

/** The provider refuses an address without a prefix length. */
function withPrefix(network: Json): Json {
  const text = String(network);
  return text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
}

/** The fields of its type are in a block of that name. Omitted fields have other defaults in the provider than in the API. */
function scheduleOf(schedule: Json): Json {
  if (!isObject(schedule)) return schedule;
  const { type, max_quantity, resource_name_template, retention_time, ...fields } = schedule;
  return {
    max_quantity: max_quantity ?? 2,
    resource_name_template:
      resource_name_template ?? 'Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}',
    retention_time,
    [String(type)]: type === 'cron' ? { ...finerCronFields(fields), ...fields } : fields,
  };
}

/** Fields finer than the least significant one that is given have their minimum; the provider writes `*` for the hour and day. */
function finerCronFields(fields: JsonObject): JsonObject {
  const isGiven = (name: string) => (fields[name] ?? '') !== '';
  if (isGiven('minute') || isGiven('hour')) return {};
  return words('day week day_of_week').some(isGiven) ? { hour: '0' } : { day: '1', hour: '0' };
}

export function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** The provider reads times in UTC without a zone. */
function withoutZone(time: string): string {
  const date = new Date(/(Z|[+-]\d\d:?\d\d)$/i.test(time) ? time : `${time}Z`);
  return Number.isNaN(date.getTime()) ? time : date.toISOString().replace(/(\.000)?Z$/, '');
}
