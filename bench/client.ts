/** A lightweight client of the API. */
import { Agent, request } from 'node:http';
import type { Cloudyard } from './cloudyard.ts';

export type Client = (method: string, path: string, body?: string) => Promise<any>;

/** Uses node:http with keep-alive, because `fetch` costs more than the server's part of some requests. */
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
          else if (response.statusCode === 204) resolve(undefined);
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
        });
      });
      sent.once('error', reject).end(body);
    });
}

/** Milliseconds from the request to the response that its task is FINISHED. @throws if the task fails */
export async function finished(client: Client, method: string, path: string, body?: string): Promise<number> {
  const began = performance.now();
  const { tasks } = await client(method, path, body);
  const task = await client('GET', `/cloud/v1/tasks/${tasks[0]}?wait=30`);
  if (task.state !== 'FINISHED') throw new Error(`the task is ${task.state}: ${task.error}`);
  return performance.now() - began;
}
