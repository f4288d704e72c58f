/** A bare Fastify route without logger and hooks, which returns fixed bytes. */
import { readFileSync } from 'node:fs';
import Fastify from 'fastify';

const [port, bodyFile] = process.argv.slice(2);
const body = readFileSync(bodyFile!, 'utf8');
const app = Fastify();
app.get('/', async (_request, reply) => reply.type('application/json; charset=utf-8').send(body));
await app.listen({ host: '127.0.0.1', port: Number(port) });
process.stdout.write('listening\n');
