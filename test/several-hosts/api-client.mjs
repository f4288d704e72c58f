/**
 * Sends requests that it gets as lines of JSON, each in a connection of its own, and prints the responses as lines of JSON.
 * Status 0: no response within 3 s.
 */
import { createInterface } from 'node:readline';
import { request as send } from 'node:http';

const timeoutMs = 3000;

for await (const line of createInterface(process.stdin)) {
  const { id, method, url, headers, body } = JSON.parse(line);
  void perform({ method, url, headers, body }).then((answer) => {
    process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`);
  });
}
process.exit(0);

function perform({ method, url, headers, body }) {
  return new Promise((resolve) => {
    const failed = () => resolve({ status: 0, body: '' });
    const sent = send(url, { method, headers, agent: false, signal: AbortSignal.timeout(timeoutMs) }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode, body: text }));
      response.on('error', failed);
    });
    sent.on('error', failed);
    sent.end(body);
  });
}
