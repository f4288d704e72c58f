/** What the body of a pool or listener refers to: secrets and subnets. An unknown one is 400 and names the field. */
import { ClientError } from '../../../errors/catalogue.ts';
import type { FieldError } from '../../../errors/catalogue.ts';
import type { Tx } from '../../../platform/db.ts';
import type { MemberSettings, PoolSettings } from './settings.ts';
import * as store from './store.ts';
import type { Where } from './store.ts';

/** A secret that a body names, what it is to be used as, and the field that names it. */
export interface WantedSecret {
  id: string;
  kind: 'certificate' | 'ca' | 'crl';
  path: string;
}

export interface WantedSubnet {
  id: string;
  path: string;
}

/** What of secrets is needed here. */
export interface SecretsForUse {
  /** Holds them until the transaction ends. @throws ClientError 400 naming every field at fault */
  holdForUse(tx: Tx, where: Where, wanted: WantedSecret[]): Promise<void>;
}

/**
 * The secrets that a pool names. One that it named `before` is its own already: it cannot have been deleted, and when it
 * has expired since, a change of something else is not to fail for it.
 */
export function secretsWanted(pool: PoolSettings, before: PoolSettings | null, path: string): WantedSecret[] {
  const named = [
    { field: 'ca_secret_id', kind: 'ca', id: pool.caSecretId, was: before?.caSecretId },
    { field: 'crl_secret_id', kind: 'crl', id: pool.crlSecretId, was: before?.crlSecretId },
    { field: 'secret_id', kind: 'certificate', id: pool.secretId, was: before?.secretId },
  ] as const;
  return named.flatMap(({ field, kind, id, was }) =>
    id === null || id === was ? [] : [{ id, kind, path: `${path}${field}` }],
  );
}

/** The subnets that new members name; `path` is that of the list. */
export function subnetsWanted(members: MemberSettings[], before: MemberSettings[], path: string): WantedSubnet[] {
  const known = new Set(before.map((member) => member.subnetId));
  return members.flatMap(({ subnetId }, i) =>
    subnetId === null || known.has(subnetId) ? [] : [{ id: subnetId, path: `${path}.${i}.subnet_id` }],
  );
}

/** Holds what there is of all that is wanted, and returns what there is not. */
export async function referenceFaults(
  tx: Tx,
  secrets: SecretsForUse,
  where: Where,
  wanted: { secrets: WantedSecret[]; subnets: WantedSubnet[] },
): Promise<FieldError[]> {
  const known = await store.knownSubnets(tx, where, [...new Set(wanted.subnets.map((subnet) => subnet.id))]);
  const unknown = wanted.subnets
    .filter((subnet) => !known.has(subnet.id))
    .map(({ id, path }) => ({ path, message: `subnet ${id} was not found in this project and region` }));
  return [...(await secretFaults(tx, secrets, where, wanted.secrets)), ...unknown];
}

async function secretFaults(
  tx: Tx,
  secrets: SecretsForUse,
  where: Where,
  wanted: WantedSecret[],
): Promise<FieldError[]> {
  try {
    await secrets.holdForUse(tx, where, wanted);
    return [];
  } catch (error) {
    // Told together with whatever else is wrong.
    if (error instanceof ClientError && error.code === 'InvalidInput') return error.errors;
    throw error;
  }
}
