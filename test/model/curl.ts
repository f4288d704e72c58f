/** Prints a story as a shell script with curl, for a report of a defect. */
import type { Disturbance, Group, Kind, Step, Story } from './model.ts';
import { commandOf, kindOf } from './resources/list.ts';

const prelude = `# URL, ADMIN (token of the operator), TOKEN, CLIENT and PROJECT of a new client, NETWORK1 and SUBNET2: its default ones
api() { curl -sS -H "Authorization: apikey $TOKEN" -H 'Content-Type: application/json' "$@"; }
operator() { curl -sS -H "Authorization: apikey $ADMIN" -H 'Content-Type: application/json' "$@"; }
created() { jq -r '.tasks[0]' | xargs -I{} curl -sS -H "Authorization: apikey $TOKEN" "$URL/v1/tasks/{}?wait=60" | jq -r ".created_resources.$1[0]"; }`;

export function toCurl(story: Story, limits: Record<string, number>): string {
  const quotas = Object.keys(limits).length > 0 ? [setLimits(limits)] : [];
  return [prelude, ...quotas, ...story.map((group, i) => groupText(group, i))].join('\n');
}

function setLimits(limits: Record<string, number>): string {
  const body = JSON.stringify({ region_id: 1, ...limitFields(limits) });
  return `operator -X PATCH $URL/cloudyard/v1/clients/$CLIENT/quotas -d '${body}'`;
}

export const limitFields = (limits: Record<string, number>) =>
  Object.fromEntries(Object.entries(limits).map(([kind, limit]) => [`${kind}_limit`, limit]));

function groupText(group: Group, i: number): string {
  const parallel = group.steps.length > 1;
  const notes = [
    `# ${i + 1}. ${group.steps.map(({ command }) => command).join(', ')}${parallel ? ' (at the same time)' : ''}`,
    ...(group.disturbance ? [`#    ${disturbanceText(group.disturbance)}`] : []),
    ...(group.fault ? [faultText(group.steps[0]!)] : []),
  ];
  return ['', ...notes, ...group.steps.map((step) => stepText(step) + (parallel ? ' &' : ''))].join('\n');
}

function disturbanceText(disturbance: Disturbance): string {
  if (disturbance.kind === 'crash') {
    const moment =
      disturbance.process === 'worker' ? `${disturbance.moment} its next driver call` : 'before it sends its response';
    return `kill -9 the ${disturbance.process} ${moment}; start it again, repeat requests with the same Idempotency-Key`;
  }
  const how = disturbance.kind === 'kill' ? 'kill -9' : 'stop';
  return `meanwhile (after ${disturbance.delayMs} ms): ${how} ${disturbance.process}; start it again`;
}

function faultText(step: Step): string {
  const { resource, operation } = commandOf(step.command).fault!;
  const body = JSON.stringify({ resource, operation, mode: 'fail' });
  return `operator -X POST $URL/cloudyard/v1/dev/faults -d '${body}'`;
}

function stepText(step: Step): string {
  const command = commandOf(step.command);
  const path = command.path
    .replace('{scope}', '$PROJECT/1')
    .replace('{client}', '$CLIENT')
    .replace('{on}', `$${variable(step.on ?? '')}`)
    .replace('{parent}', `$PARENT_OF_${variable(step.on ?? '')}`);
  const body =
    step.body && ` -d '${JSON.stringify(step.body).replaceAll(/"@(\w+)"/g, (_, label) => `"'$${variable(label)}'"`)}'`;
  const call = `${command.operator ? 'operator' : 'api'} -X ${command.method} "$URL${path}"${body ?? ''}`;
  return step.label ? `${variable(step.label)}=$(${call}${idText(kindOf(command.creates!))})` : call;
}

const idText = (kind: Kind) =>
  kind.createdAs ? ` | created ${kind.createdAs}` : ` | jq -r ${kind.id ? '.name' : '.id'}`;
const variable = (label: string) => label.toUpperCase().replaceAll(/\W/g, '_');
