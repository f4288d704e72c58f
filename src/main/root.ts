import { fileURLToPath } from 'node:url';

/** The checkout: where config/, migrations/ and the default data directory lie. */
export const root = fileURLToPath(new URL('../..', import.meta.url));
