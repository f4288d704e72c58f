/**
 * Cloudyard, which collects its garbage often: its memory is then what it needs. Otherwise it is, for minutes, what V8 has not
 * collected yet, and the phase of the last collection would look like growth.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const everyMs = 2000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
setInterval(collect, everyMs).unref();

await import('../../src/main/cloudyard.ts');
