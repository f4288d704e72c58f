/** SQL of the token server: the registries that a user or a client may access. */
import { and, eq, inArray, isNull, type SQL } from 'drizzle-orm';
import type { Db } from '../../../platform/db.ts';
import { isVisible, type Visible } from '../../store-kit.ts';
import { registries, registryUsers } from '../table.ts';

const columns = {
  id: registries.id,
  name: registries.name,
  storageLimit: registries.storageLimit,
  storageUsed: registries.storageUsed,
};

/** A registry that a login grants access to. */
export type RegistryAccess = Pick<typeof registries.$inferSelect, keyof typeof columns> &
  Pick<typeof registryUsers.$inferSelect, 'readOnly' | 'expiresAt'>;

const isIn = (regionIds: number[]): SQL | undefined =>
  and(inArray(registries.regionId, regionIds), isNull(registries.deletedAt));

/** Several registries may have a user of this name and secret. */
export async function findByUser(
  db: Db,
  regionIds: number[],
  name: string,
  secretMac: Buffer,
): Promise<RegistryAccess[]> {
  return db
    .select({ ...columns, readOnly: registryUsers.readOnly, expiresAt: registryUsers.expiresAt })
    .from(registryUsers)
    .innerJoin(registries, eq(registries.id, registryUsers.registryId))
    .where(and(eq(registryUsers.name, name), eq(registryUsers.secretMac, secretMac), isIn(regionIds)));
}

export async function findByClient(
  db: Db,
  regionIds: number[],
  visible: Visible,
): Promise<Omit<RegistryAccess, 'readOnly' | 'expiresAt'>[]> {
  return db
    .select(columns)
    .from(registries)
    .where(and(isVisible(registries, visible), isIn(regionIds)));
}
