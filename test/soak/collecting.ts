/**
 * Cloudyard, which collects its garbage often: its memory is then what it needs. Otherwise it is, for minutes, what V8 has not
 * collected yet, and the phase of the last collection would look like growth. Node runs it with --expose-gc.
 */
const everyMs = 2000;

setInterval(() => void gc!(), everyMs).unref();

await import('../../src/main/cloudyard.ts');
