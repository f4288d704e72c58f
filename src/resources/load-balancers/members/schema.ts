/** Requests and responses of the members of a pool. */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  Described,
  IpAddress,
  Nullable,
  OrderBy,
  OrNull,
  Paging,
  ShortText,
  Uuid,
} from '../../../http/shapes.ts';
import { Port, statusesOfPoolPart } from '../shapes.ts';

export const maxMembers = 1000;

const Weight = Type.Integer({
  minimum: 1,
  maximum: 256,
  description: 'Share of the traffic in proportion to the weights of the other members; 1 by default',
});
const enabled = 'Whether the member gets traffic';
const backup = 'Whether the member gets traffic only while all others are down';
const monitorAddress = 'Address that the health monitor checks; null: `address`';
const monitorPort = 'Port that the health monitor checks; null: `protocol_port`';
const ignored = 'Accepted and ignored';

const member = { address: '10.0.0.11', protocol_port: 8080 };

/** Clients repeat `id` and the statuses from responses. */
export const CreateMember = Body(
  'CreateLbPoolMember',
  [{ ...member, weight: 2 }],
  {
    address: Described(IpAddress, 'IPv4 or IPv6 address; the region may limit the networks of members'),
    protocol_port: Described(Port, 'Port that receives the traffic'),
    admin_state_up: Type.Optional(Type.Boolean({ default: true, description: enabled })),
    backup: Type.Optional(Type.Boolean({ default: false, description: backup })),
    instance_id: Type.Optional(Described(Nullable(Uuid), ignored)),
    monitor_address: Type.Optional(Described(Nullable(IpAddress), monitorAddress)),
    monitor_port: Type.Optional(Described(Nullable(Port), monitorPort)),
    subnet_id: Type.Optional(Described(Nullable(Uuid), 'ID of the subnet of the address; stored, nothing is routed')),
    weight: Type.Optional(Weight),
    id: Type.Optional(Described(Nullable(ShortText), ignored)),
    operating_status: Type.Optional(Described(Nullable(ShortText), ignored)),
    provisioning_status: Type.Optional(Described(Nullable(ShortText), ignored)),
  },
  'Address and port identify the member within its pool',
);
export type CreateMember = Static<typeof CreateMember>;

export const ReplaceMembers = Type.Array(CreateMember, {
  title: 'ReplaceLbPoolMembers',
  maxItems: maxMembers,
  examples: [[member, { address: '10.0.0.12', protocol_port: 8080, backup: true }]],
});

export const UpdateMember = Body('UpdateLbPoolMember', [{ weight: 5 }], {
  admin_state_up: Type.Optional(Type.Boolean({ description: enabled })),
  backup: Type.Optional(Type.Boolean({ description: backup })),
  monitor_address: Type.Optional(Described(Nullable(IpAddress), monitorAddress)),
  monitor_port: Type.Optional(Described(Nullable(Port), monitorPort)),
  weight: Type.Optional(Weight),
});
export type UpdateMember = Static<typeof UpdateMember>;

export const Member = Component('LbPoolMember', {
  id: Described(Uuid, 'ID of the member'),
  ...statusesOfPoolPart,
  address: Type.String({ description: 'IPv4 or IPv6 address' }),
  admin_state_up: Type.Boolean({ description: enabled }),
  backup: Type.Boolean({ description: backup }),
  monitor_address: OrNull.text(monitorAddress),
  monitor_port: OrNull.integer(monitorPort),
  protocol_port: Type.Integer({ description: 'Port that receives the traffic' }),
  subnet_id: Described(Nullable(Uuid), 'ID of the subnet of the address'),
  weight: Type.Integer({ description: 'Share of the traffic in proportion to the weights of the other members' }),
});
export type Member = Static<typeof Member>;
export const MemberCollection = Collection(Member);

export const ListMembers = Type.Object({
  ...Paging(1000),
  order_by: OrderBy(['address', 'created_at'], 'address.asc'),
});
export type ListMembers = Static<typeof ListMembers>;
