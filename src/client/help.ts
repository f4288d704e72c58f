/** The part of `cloudyard help` that describes the client. */
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
  const width = Math.max(...[...groups, ...others].map(([name]) => name.length));
  const lines = (rows: [string, string][]) => rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`).join('\n');
  return `Commands of clients of a server (docs/guides/command-line.md):\n${lines(others)}\n\nResources:\n${lines(groups)}`;
}
