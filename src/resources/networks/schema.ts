/** Requests and responses of networks (docs/interface.md, "Networks and subnets"). */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  Name,
  Nullable,
  OrderBy,
  OrNull,
  Paging,
  PlaceFields,
  TaskFields,
  Uuid,
} from '../../http/shapes.ts';
import { TagFilterQuery } from '../../tags/filter.ts';
import { newTagFields, Tag, UpdateTags } from '../../tags/tags.ts';

const NetworkType = Type.Enum(['vlan', 'vxlan'], { description: 'Type of the network; default: `vxlan`' });
export type NetworkType = Static<typeof NetworkType>;

export const CreateNetwork = Body('CreateNetwork', [{ name: 'my-network' }], {
  name: Name,
  create_router: Type.Optional(Type.Boolean({ description: 'Accepted and ignored: packets are not routed' })),
  type: Type.Optional(NetworkType),
  ...newTagFields,
});
export type CreateNetwork = Static<typeof CreateNetwork>;

export const UpdateNetwork = Body('UpdateNetwork', [{ name: 'renamed-network' }], {
  name: Type.Optional(Name),
  tags: Type.Optional(UpdateTags),
});
export type UpdateNetwork = Static<typeof UpdateNetwork>;

export const ListNetworks = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  external: Type.Optional(Type.Boolean({ description: 'Only external, or only internal networks' })),
  name: Type.Optional(Type.String({ maxLength: 61, description: 'Only networks whose name contains this text' })),
  network_type: Type.Optional(Described(NetworkType, 'Only networks of this type')),
  order_by: OrderBy(['created_at', 'name'], 'created_at.desc', ['priority.desc']),
  owned_by: Type.Optional(
    Type.Enum(['any', 'project'], { description: '`project`: only networks of the project; `any`: shared ones too' }),
  ),
});
export type ListNetworks = Static<typeof ListNetworks>;

export const Network = Component('Network', {
  id: Described(Uuid, 'ID of the network'),
  name: Type.String({ description: 'Name of the network' }),
  created_at: Described(DateTime, 'When the network was created'),
  ...TaskFields,
  creator_task_id: Described(Nullable(Uuid), 'ID of the task that created the network; null for a default network'),
  default: Described(Nullable(Type.Boolean()), 'Whether this is the default network of the project'),
  external: Type.Boolean({ description: 'Always false' }),
  mtu: Type.Integer({ description: 'Maximum transmission unit in bytes' }),
  port_security_enabled: Type.Boolean({ description: 'Always true' }),
  ...PlaceFields,
  project_id: OrNull.integer('ID of the project'),
  segmentation_id: OrNull.integer('Random number; nothing depends on it'),
  shared: Type.Boolean({ description: 'Whether other projects can use the network' }),
  subnets: Type.Array(Uuid, { description: 'IDs of the subnets' }),
  tags: Type.Array(Tag, { description: 'Tags, by key' }),
  metadata: Type.Array(Tag, { deprecated: true, description: 'Use `tags`; the Terraform provider reads this name' }),
  type: Type.String({ description: '`vlan` or `vxlan`' }),
  updated_at: Described(DateTime, 'When the network last changed'),
});
export type Network = Static<typeof Network>;
export const NetworkCollection = Collection(Network);
