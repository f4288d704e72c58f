/** The settings in words: for `cloudyard help`, and for docs/settings.md. */
import { settingMeanings } from '../platform/setting-meanings.ts';
import type { SettingDescription } from '../platform/setting-reader.ts';
import { driverSettings } from './settings.ts';

const coreSettings: SettingDescription[] = Object.entries(settingMeanings).map(([name, text]) => ({
  ...{ name, default: 'not set' },
  ...text,
}));

/** The page docs/settings.md. */
export function settingsPage(): string {
  return `# Settings

Generated from src/platform/setting-meanings.ts and src/drivers/kinds.ts (npm run generate).

Settings are environment variables. An empty value counts as not set. With an invalid value the process does not start, and prints one
line for each invalid setting. An unknown variable that starts with \`CLOUDYARD_\` is reported and ignored. \`cloudyard help settings\` prints
this list, and \`cloudyard help NAME\` one setting.

- [Servers and workers](#servers-and-workers)
- [Drivers](#drivers): file shares, load balancers, volumes, registries, e-mail, webhooks

## Servers and workers

${tableOf(coreSettings)}
## Drivers

${tableOf(driverSettings)}`;
}

/** What `cloudyard help settings` prints; with a name, only that setting. Undefined if it does not exist. */
export function settingsHelp(name?: string): string | undefined {
  const all = [...coreSettings, ...driverSettings];
  const found = name === undefined ? all : all.filter((setting) => setting.name === name);
  if (found.length === 0) return undefined;
  return found.map(inWords).join('\n\n');
}

function tableOf(settings: SettingDescription[]): string {
  const rows = settings.map((setting) => `| \`${setting.name}\` | ${setting.default} | ${setting.meaning} |\n`);
  return ['| Setting | Default | Meaning |\n|---|---|---|\n', ...rows].join('');
}

function inWords({ name, default: fallback, meaning }: SettingDescription): string {
  const lines = wrapped(plain(meaning), 76).map((line) => `    ${line}`);
  return [`${name} (default: ${plain(fallback)})`, ...lines].join('\n');
}

/** Markdown without its marks; a link is its text and the document. */
function plain(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]*)\]\(([^)#]*)[^)]*\)/g, '$1 (docs/$2)').replaceAll('`', '');
}

function wrapped(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}
