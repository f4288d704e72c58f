/**
 * An API server that a story can crash between the commit of a request and its response: a file `crash-server` in TEST_HOST
 * kills this process when it is about to send its next response.
 */
import { existsSync, rmSync } from 'node:fs';
import { ServerResponse } from 'node:http';
import { join } from 'node:path';

const file = join(process.env['TEST_HOST']!, 'crash-server');
const { writeHead } = ServerResponse.prototype;

ServerResponse.prototype.writeHead = function crashing(this: ServerResponse, ...args: unknown[]) {
  if (existsSync(file)) {
    rmSync(file);
    process.kill(process.pid, 'SIGKILL');
  }
  return writeHead.apply(this, args as never);
} as typeof writeHead;

await import('../../src/main/cloudyard.ts');
