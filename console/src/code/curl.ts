import { type ApiRequest, baseUrlOf, escapeHidden, targetOf } from './request.ts';
import { answersWithTasks } from './task-operations.ts';

const authorization = '-H "Authorization: apikey $CLOUDYARD_TOKEN"';

/** Linux limits one argument to 128 KiB; a character has up to 3 bytes. */
const longestArgument = 30_000;

/** Prints the responses, or the outcome of each task. The status is not zero if a request or a task fails. */
export function curlFor(requests: readonly [ApiRequest, ...ApiRequest[]]): string {
  const [{ operationId, ...first }] = requests;
  const base = baseUrlOf({ operationId, ...first });
  const waits = answersWithTasks(operationId) || operationId === 'revertVolume';
  const lines = requests.map((request, index) => {
    const { command, input } = commandOf(request, base);
    const and = index < requests.length - 1 ? ' &&' : '';
    if (operationId === 'revertVolume') return `${command} &&\n${printTaskOf(request, base)}${and}`;
    return `${command}${waits ? ` | jq -r '.tasks? // halt_error | .[]'` : ''}${and}${input}`;
  });
  return waits ? withWait(lines, base) : `${lines.join('\n')}\n`;
}

/** `input` begins the next line. */
function commandOf(request: ApiRequest, base: string): { command: string; input: string } {
  const method = request.method.toUpperCase();
  const options = [`curl -sS --fail-with-body -X ${method} ${quote(base + targetOf(request))}`, authorization];
  let input = '';
  if (request.body !== undefined) {
    const json = jsonOf(request.body);
    const fits = json.length <= longestArgument;
    options.push("-H 'Content-Type: application/json'", fits ? `-d ${quote(json)}` : "-d @- <<'JSON'");
    if (!fits) input = `\n${json}\nJSON`;
  }
  return { command: options.join(' \\\n  '), input };
}

/** The response of a revert is empty. The volume has the task ID until the task ends; its status shows a failure. */
function printTaskOf(request: ApiRequest, base: string): string {
  const volume = targetOf({ ...request, path: request.path.replace(/\/revert$/, '') });
  const task = '.task_id // if .status == "error_restoring" then halt_error else empty end';
  return `curl -sS --fail-with-body ${quote(base + volume)} \\\n  ${authorization} | jq -r '${task}'`;
}

/** Each request for a task waits up to 60 s. Without a connection it is repeated. zsh does not split `$tasks` without `echo`. */
function withWait(printTasks: string[], base: string): string {
  return `failed=
tasks=$(
  set -o pipefail
  ${printTasks.join('\n  ')}
) || failed=1
for task in $(echo "$tasks"); do
  until ended=$(curl -sS ${authorization} "${base}/cloud/v1/tasks/$task?wait=60" |
    jq -e 'select(.state != "NEW" and .state != "RUNNING") | {state, error: (.error // .message), created_resources}')
  do sleep 1; done
  echo "$ended"
  [[ $ended == *'"state": "FINISHED"'* ]] || failed=1
done
[ -z "$failed" ]
`;
}

function jsonOf(body: unknown): string {
  return JSON.stringify(body, null, 2).split('\n').map(escapeHidden).join('\n');
}

/** For a POSIX shell. Nothing has a meaning between single quotes except the quote itself. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
