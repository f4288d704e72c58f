/**
 * Sends a GET every 20 ms, each in a connection of its own, until its standard input ends. Then it prints a Gap
 * (balancer-region.ts) as JSON. It prints `answering` after its first answer, and after 10 more for every line of its input.
 *
 *   node gap-client.mjs URL [--keep-alive]
 */
import http from 'node:http';

const [url, flag] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: flag === '--keep-alive', maxSockets: Number.POSITIVE_INFINITY });
const everyMs = 20;
/** Longer than the pause of a drain: a connection is opened again after 1 s and 3 s. */
const timeoutMs = 8_000;
const result = { requests: 0, failures: 0, errors: {}, longestGapMs: 0, answers: {} };
const pending = new Set();
let last = null;
/** Answers until the next `answering`. */
let remaining = 1;
let stopping = false;

function answered(text) {
  const now = performance.now();
  if (last !== null && now - last > result.longestGapMs) result.longestGapMs = now - last;
  last = now;
  remaining -= 1;
  if (remaining === 0) process.stdout.write('answering\n');
  result.answers[text] = (result.answers[text] ?? 0) + 1;
}

function send() {
  result.requests += 1;
  const request = http.get(url, { agent, timeout: timeoutMs }, (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (part) => (text += part));
    response.on('end', () => {
      pending.delete(request);
      if (response.statusCode === 200) answered(text.trim());
      else fail(`HTTP ${response.statusCode}`);
      finish();
    });
    response.on('error', (error) => failed(error));
  });
  const failed = (error) => {
    if (!pending.delete(request)) return;
    fail(error.code ?? error.message);
    finish();
  };
  pending.add(request);
  request.on('timeout', () => request.destroy(Object.assign(new Error('timeout'), { code: 'TIMEOUT' })));
  request.on('error', failed);
}

function fail(why) {
  result.failures += 1;
  result.errors[why] = (result.errors[why] ?? 0) + 1;
}

function finish() {
  if (!stopping || pending.size > 0) return;
  process.stdout.write(`${JSON.stringify({ ...result, longestGapMs: Math.round(result.longestGapMs) })}\n`);
  process.exit(0);
}

const timer = setInterval(send, everyMs);
process.stdin.on('data', () => (remaining = 10));
process.stdin.on('end', () => {
  clearInterval(timer);
  stopping = true;
  finish();
});
