/** The part of `cloudyard help` that describes the client. */
import { aligned } from './output.ts';
import { table } from './table.ts';

const others: [command: string, summary: string][] = [
  ['context add|use|list|remove', 'Servers, tokens and default projects'],
  ['login [CONTEXT]', 'Sign in with single sign-on'],
  ['apply -f FILE', 'Create and update the resources that files describe'],
  ['diff -f FILE', 'Print what apply would change'],
  ['api METHOD PATH', 'Send any request and print the response'],
  ['batch [FILE]', 'Run the commands of a file in one process'],
  ['completion bash|zsh|fish', 'Print the completion script of a shell'],
];

export function clientHelp(): string {
  const groups = Object.entries(table.groups);
  const lines = aligned([...others, ...groups]).map((line) => `  ${line}\n`);
  const [commands, resources] = [lines.slice(0, others.length), lines.slice(others.length)].map((each) =>
    each.join(''),
  );
  return `Commands of clients of a server (docs/guides/command-line.md):\n${commands}\nResources:\n${resources}`.trimEnd();
}
