/** Pieces that the schemas of many resources share. */
import { Type } from 'typebox';
import type { TSchema } from 'typebox';

/** `null` beside a type. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** An integer that PostgreSQL's `integer` holds. */
export const IntegerId = Type.Integer({ minimum: -2_147_483_648, maximum: 2_147_483_647 });

export const Uuid = Type.String({ format: 'uuid' });

/** The pattern of most names: 3 to 63 characters, no space at the ends (docs/interface.md, "Conventions"). */
export const Name = Type.String({ pattern: '^[a-zA-Z0-9][a-zA-Z 0-9._\\-]{1,61}[a-zA-Z0-9._]$', maxLength: 63 });

/** Text that is compared with something, such as a part of a name, or that is accepted and ignored. */
export const ShortText = Type.String({ maxLength: 255 });

export const ProjectRegion = Type.Object({ project_id: IntegerId, region_id: IntegerId });

export const TaskIds = Type.Object({ tasks: Type.Array(Type.String()) });

export const Paging = (fallback: number) => ({
  limit: Type.Optional(Type.Integer({ exclusiveMinimum: 0, maximum: 1000, default: fallback })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 })),
});

/** GiB. The bound keeps sums of sizes far below what a counter holds. */
export const maxSizeGib = 1_000_000_000;
export const SizeGib = Type.Integer({ minimum: 1, maximum: maxSizeGib, description: 'GiB' });

export const IpNetwork = Type.String({ format: 'ip-network', description: 'an address or a CIDR' });
export const IpAddress = Type.String({ format: 'ip-address' });

/** A list as the interface shows it; `count` is of all that match, not of this page. */
export const Collection = <T extends TSchema>(item: T) =>
  Type.Object({ count: Type.Integer({ minimum: 0 }), results: Type.Array(item) });
