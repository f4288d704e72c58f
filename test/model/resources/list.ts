/** Every resource of the model: one line each. */
import type { Command, Kind } from '../model.ts';
import { fileShares } from './file-shares.ts';
import { l7Policies } from './l7-policies.ts';
import { lifecyclePolicies } from './lifecycle-policies.ts';
import { loadBalancers } from './load-balancers.ts';
import { networksAndSubnets } from './networks.ts';
import { records } from './records.ts';
import { registries } from './registries.ts';
import { volumes } from './volumes.ts';

const resources = [
  networksAndSubnets,
  fileShares,
  volumes,
  lifecyclePolicies,
  loadBalancers,
  l7Policies,
  registries,
  ...records,
];

export const kinds: readonly Kind[] = resources.flatMap((resource) => resource.kinds);
export const commands: readonly Command[] = resources.flatMap((resource) => resource.commands);

const byName = new Map(commands.map((command) => [command.name, command]));
const kindsByName = new Map(kinds.map((kind) => [kind.name, kind]));

export const commandOf = (name: string): Command => byName.get(name)!;
export const kindOf = (name: string): Kind => kindsByName.get(name)!;
