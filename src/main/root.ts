import { fileURLToPath } from 'node:url';

/** The root of the checkout, with config/, migrations/ and the default data directory. */
export const root = fileURLToPath(new URL('../..', import.meta.url));
