/** Requests and responses of networks (docs/interface.md, "Networks and subnets"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Name, Nullable, Paging, Uuid } from '../../http/shapes.ts';
import { TagFilterQuery } from '../../tags/filter.ts';
import { CreateTags, Tag, UpdateTags } from '../../tags/tags.ts';

export const NetworkPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, network_id: Uuid });

const NetworkType = Type.Enum(['vlan', 'vxlan']);
export type NetworkType = Static<typeof NetworkType>;

export const CreateNetwork = Type.Object(
  {
    name: Name,
    create_router: Type.Optional(Type.Boolean({ description: 'accepted and ignored: no packets are routed' })),
    type: Type.Optional(NetworkType),
    tags: Type.Optional(CreateTags),
    /** The Terraform provider writes tags under this name. */
    metadata: Type.Optional(CreateTags),
  },
  { additionalProperties: false },
);
export type CreateNetwork = Static<typeof CreateNetwork>;

export const UpdateNetwork = Type.Object(
  { name: Type.Optional(Name), tags: Type.Optional(UpdateTags) },
  { additionalProperties: false },
);
export type UpdateNetwork = Static<typeof UpdateNetwork>;

export const ListNetworks = Type.Object({
  ...Paging(1000),
  ...TagFilterQuery,
  external: Type.Optional(Type.Boolean()),
  name: Type.Optional(Type.String({ maxLength: 61, description: 'a part of the name' })),
  network_type: Type.Optional(NetworkType),
  order_by: Type.Optional(
    Type.Enum(['created_at.asc', 'created_at.desc', 'name.asc', 'name.desc', 'priority.desc'], {
      default: 'created_at.desc',
    }),
  ),
  owned_by: Type.Optional(Type.Enum(['any', 'project'])),
});
export type ListNetworks = Static<typeof ListNetworks>;

export const Network = Type.Object({
  id: Uuid,
  name: Type.String(),
  created_at: Type.String(),
  creator_task_id: Nullable(Uuid),
  default: Nullable(Type.Boolean()),
  external: Type.Boolean(),
  mtu: Type.Integer(),
  port_security_enabled: Type.Boolean(),
  project_id: Nullable(Type.Integer()),
  region: Type.String(),
  region_id: Type.Integer(),
  segmentation_id: Nullable(Type.Integer()),
  shared: Type.Boolean(),
  subnets: Type.Array(Uuid),
  tags: Type.Array(Tag),
  /** The Terraform provider reads tags under this name. */
  metadata: Type.Array(Tag, { deprecated: true }),
  task_id: Nullable(Uuid),
  type: Type.String(),
  updated_at: Type.String(),
});
export type Network = Static<typeof Network>;
export const NetworkCollection = Collection(Network);
export type NetworkCollection = Static<typeof NetworkCollection>;
