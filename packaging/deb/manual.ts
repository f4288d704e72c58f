/** The manual page and the shell completions, from the command itself. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export function manualPage(checkout: string, seconds: number): string {
  const date = new Date(seconds * 1000).toISOString().slice(0, 10);
  return [
    `.TH CLOUDYARD 1 "${date}" "Cloudyard" "User Commands"`,
    '.SH NAME\ncloudyard \\- self-hosted cloud control plane',
    '.SH SYNOPSIS\n.B cloudyard\n.I command\n[\\fIargument\\fR ...]',
    '.SH DESCRIPTION',
    'Runs the servers and workers of Cloudyard, administers them, and uses their API.',
    'The package starts them with systemd:\n.BR cloudyard\\-serve.service ,\n.BR cloudyard\\-worker@1.service .',
    '.SH COMMANDS\n.nf',
    escaped(run(checkout, 'help')),
    '.fi',
    '.SH ENVIRONMENT\n.nf',
    escaped(run(checkout, 'help', 'settings')),
    '.fi',
    '.SH FILES\n.TP\n.I /etc/cloudyard/cloudyard.env\nSettings of the services.',
    '.TP\n.I /etc/cloudyard/regions.yaml\nThe regions; quotas.yaml and prices.yaml are limits and prices.',
    '.TP\n.I /var/lib/cloudyard\nThe database, the keys and the data of tenants.',
    '.SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nFailed.\n.TP\n2\nInvalid arguments, settings or configuration files.\n.TP\n3\nTimed out.\n.TP\n4\nNot found.',
    '',
  ].join('\n');
}

const shells = {
  bash: 'usr/share/bash-completion/completions/cloudyard',
  zsh: 'usr/share/zsh/vendor-completions/_cloudyard',
  fish: 'usr/share/fish/vendor_completions.d/cloudyard.fish',
};

/** Texts by path in the package. */
export function completionScripts(checkout: string): Record<string, string> {
  const scripts = Object.entries(shells).map(([shell, path]) => [path, run(checkout, 'completion', shell)]);
  return Object.fromEntries(scripts) as Record<string, string>;
}

function run(checkout: string, ...args: string[]): string {
  const program = join(checkout, 'dist', 'main', 'cloudyard.js');
  return execFileSync(process.execPath, [program, ...args], { encoding: 'utf8', env: { PATH: process.env['PATH'] } });
}

function escaped(text: string): string {
  return text
    .trimEnd()
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/^([.'])/gm, '\\&$1');
}
