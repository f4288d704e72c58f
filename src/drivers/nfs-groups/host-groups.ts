/** The NFS groups that a host may serve, with the shares of each. A group is known from its first share on. */
import type { NfsGroup } from './group.ts';
import type { PublishedShare } from './share-state.ts';

/** `createGroup`: called once for each address, until `clear`. */
export function hostGroups(createGroup: (address: string) => NfsGroup) {
  const groups = new Map<string, NfsGroup>();
  /** The address of its group, by the id of a share. */
  const groupOf = new Map<string, string>();

  const groupAt = (address: string): NfsGroup => {
    const group = groups.get(address) ?? createGroup(address);
    groups.set(address, group);
    return group;
  };

  return {
    /** By address. */
    all: groups as ReadonlyMap<string, NfsGroup>,
    /** Puts a share into its group (null: removes it). Returns the group whose server must follow; null: none. */
    setShare(id: string, share: PublishedShare | null): NfsGroup | null {
      const before = groupOf.get(id);
      if (before !== undefined && before !== share?.group) groups.get(before)?.shares.delete(id);
      if (!share) {
        groupOf.delete(id);
        return before === undefined ? null : (groups.get(before) ?? null);
      }
      groupOf.set(id, share.group);
      const group = groupAt(share.group);
      group.shares.set(id, share);
      return group;
    },
    shareIds: () => [...groupOf.keys()],
    clear(): void {
      groups.clear();
      groupOf.clear();
    },
  };
}
