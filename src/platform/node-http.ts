/**
 * `node:http`, for values. An `import` of it reads all its exports, among them `WebSocket`, which loads undici: 11 MB of
 * resident memory and 50 ms of CPU time in each process. Types come from `node:http`.
 */
export const { Agent, createServer, get, request, STATUS_CODES } = process.getBuiltinModule('node:http');
