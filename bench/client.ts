/** A client of the API that costs less than what it measures. */
import { Agent, request } from 'node:http';
import type { Cloudyard } from './cloudyard.ts';

export type Client = (method: string, path: string, body?: string) => Promise<any>;

/** Node's own client on kept connections: `fetch` costs more than the server's part of some of these requests. */
export function createClient({ url, headers }: Cloudyard): Client {
  const agent = new Agent({ keepAlive: true });
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const fields = { ...headers, ...(body && { 'content-type': 'application/json' }) };
      const sent = request(url + path, { agent, method, headers: fields }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        response.on('end', () => {
          if (response.statusCode === 200) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
        });
      });
      sent.once('error', reject).end(body);
    });
}

/** Milliseconds from the request to the news that its one task is FINISHED. @throws when it ends otherwise */
export async function finished(client: Client, method: string, path: string, body?: string): Promise<number> {
  const began = performance.now();
  const { tasks } = await client(method, path, body);
  const task = await client('GET', `/cloud/v1/tasks/${tasks[0]}?wait=30`);
  if (task.state !== 'FINISHED') throw new Error(`the task is ${task.state}: ${task.error}`);
  return performance.now() - began;
}
