import { baseUrlOf, escapeHidden, targetOf } from './request.ts';
import type { ApiRequest } from './request.ts';
import { answersWithTasks } from './task-operations.ts';

const authorization = '-H "Authorization: apikey $CLOUDYARD_TOKEN"';

/** Linux limits one argument to 128 KiB; a character has up to 3 bytes. */
const longestArgument = 30_000;

/** Prints the response, or the outcome of each task. */
export function curlFor(request: ApiRequest): string {
  const base = baseUrlOf(request);
  const method = request.method.toUpperCase();
  const options = [`curl -sS --fail-with-body -X ${method} ${quote(base + targetOf(request))}`, authorization];
  let input = '';
  if (request.body !== undefined) {
    const json = jsonOf(request.body);
    const fits = json.length <= longestArgument;
    options.push("-H 'Content-Type: application/json'", fits ? `-d ${quote(json)}` : "-d @- <<'JSON'");
    if (!fits) input = `\n${json}\nJSON`;
  }
  const send = options.join(' \\\n  ');
  return `${answersWithTasks(request.operationId) ? withWait(send, input, base) : send + input}\n`;
}

/** Each request for a task waits up to 60 s. Without a connection it is repeated. */
function withWait(send: string, input: string, base: string): string {
  return `tasks=$(${send} | jq -r '.tasks[]? // halt_error'${input && `${input}\n`})
for task in $tasks; do
  until curl -sS ${authorization} "${base}/cloud/v1/tasks/$task?wait=60" |
    jq -e 'select(.state != "NEW" and .state != "RUNNING") | {state, error: (.error // .message), created_resources}'
  do sleep 1; done
done`;
}

function jsonOf(body: unknown): string {
  return JSON.stringify(body, null, 2).split('\n').map(escapeHidden).join('\n');
}

/** For a POSIX shell. Nothing has a meaning between single quotes except the quote itself. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
