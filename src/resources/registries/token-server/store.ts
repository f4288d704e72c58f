/** SQL of the token server: whom a name and a secret, or a token of Cloudyard, let in to what. */
import { and, eq, inArray, isNull } from 'drizzle-orm';
import type { Db } from '../../../platform/db.ts';
import { registries, registryUsers } from '../table.ts';

const columns = {
  id: registries.id,
  name: registries.name,
  storageLimit: registries.storageLimit,
  storageUsed: registries.storageUsed,
};

/** A registry as far as letting in needs to know of it. */
export interface Entrance {
  id: number;
  name: string;
  storageLimit: number;
  storageUsed: number;
  readOnly: boolean;
  expiresAt: Date | null;
}

/** Several registries may have a user of this name and secret. */
export async function ofUser(db: Db, regionIds: number[], name: string, secretMac: Buffer): Promise<Entrance[]> {
  return db
    .select({ ...columns, readOnly: registryUsers.readOnly, expiresAt: registryUsers.expiresAt })
    .from(registryUsers)
    .innerJoin(registries, eq(registries.id, registryUsers.registryId))
    .where(
      and(
        eq(registryUsers.name, name),
        eq(registryUsers.secretMac, secretMac),
        inArray(registries.regionId, regionIds),
        isNull(registries.deletedAt),
      ),
    );
}

/** `projectIds` null: all of the client's. */
export async function ofClient(
  db: Db,
  regionIds: number[],
  clientId: number,
  projectIds: number[] | null,
): Promise<Omit<Entrance, 'readOnly' | 'expiresAt'>[]> {
  return db
    .select(columns)
    .from(registries)
    .where(
      and(
        eq(registries.clientId, clientId),
        projectIds ? inArray(registries.projectId, projectIds) : undefined,
        inArray(registries.regionId, regionIds),
        isNull(registries.deletedAt),
      ),
    );
}
