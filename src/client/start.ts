/** Runs the client in this process (bin/installed.mjs). */
import { main } from './main.ts';

await main(process.argv.slice(2));
