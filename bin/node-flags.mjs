/** How the `cloudyard` command starts Node: used by cloudyard.mjs and by the packages. */

/**
 * Loading the modules produces about 160 MB of short-lived garbage, and the heap does not shrink by itself afterwards. So
 * the young generation is small, and a collection runs once the server is up (src/main/compact-heap.ts, docs/decisions/0010).
 *
 * With SIGUSR1, Node would open its debugger, to which every account of the host can connect.
 */
export const nodeFlags = ['--max-semi-space-size=16', '--expose-gc', '--disable-sigusr1'];
/** glibc would give each thread an arena of its own, and memory that is free in one is not used by the others. */
export const allocator = { MALLOC_ARENA_MAX: '1' };
