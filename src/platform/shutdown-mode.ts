/**
 * What a process does with its data planes (the programs that carry users' data) when it ends. `keepDataPlanes`: it releases
 * them, and the next process adopts them.
 */
export type ShutdownMode = 'stop' | 'keepDataPlanes';
