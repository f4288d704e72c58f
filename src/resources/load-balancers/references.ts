/** Secrets and subnets that listeners, pools and members refer to. */
import { ClientError, type FieldError } from '../../errors/catalogue.ts';
import type { Tx } from '../../platform/db.ts';
import * as store from './store.ts';
import type { SecretReference, Secrets } from '../secrets/service.ts';
import type { ProjectRegion } from '../store-kit.ts';

export type { SecretReference };

export interface SubnetReference {
  id: string;
  path: string;
}

export type SecretsForUse = Pick<Secrets, 'holdForUse'>;

/**
 * Holds the secrets and reports unknown secrets and subnets. Callers pass new references only: a secret in use cannot
 * have been deleted, and an expired one must not block other changes.
 */
export async function referenceErrors(
  tx: Tx,
  secrets: SecretsForUse,
  scope: ProjectRegion,
  { secrets: wanted, subnets = [] }: { secrets: SecretReference[]; subnets?: SubnetReference[] },
): Promise<FieldError[]> {
  const known = await store.knownSubnets(tx, scope, [...new Set(subnets.map((subnet) => subnet.id))]);
  const unknown = subnets
    .filter((subnet) => !known.has(subnet.id))
    .map(({ id, path }) => ({ path, message: `subnet ${id} not found in this project and region` }));
  try {
    await secrets.holdForUse(tx, scope, wanted);
    return unknown;
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'InvalidInput') throw error;
    return [...error.errors, ...unknown];
  }
}
