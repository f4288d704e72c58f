/**
 * Records docs/cast.svg: runs `npm start` and the share story of README.md in this checkout, and writes what the terminal
 * showed, with the times at which it did, as an animated SVG. Run it in a fresh clone, as root, with the real parts
 * installed: `node docs/cast.mjs`. Waiting is shortened to `longestWait`; the token's secret is replaced by `…`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';

const columns = 140;
const rows = 30;
const typedPerSecond = 110;
const longestWait = 4;
const hold = 3;

/** Blocks of README.md that run in the second terminal. */
const blocks = [...readFileSync('README.md', 'utf8').matchAll(/```sh\n([^]*?)```/g)].map(([, text]) => text);
const story = blocks.slice(blocks.findIndex((text) => text.startsWith('export CLOUDYARD_URL=')));
/** Indented lines continue a command. */
const commands = story
  .slice(0, 3)
  .join('')
  .trimEnd()
  .split(/\n(?! )/)
  .filter(Boolean);

/** What the terminal showed: lines, each with the second at which it appeared. */
const shown = [];
let now = 0;
const show = (text, kind) => {
  for (const line of text.split('\n')) {
    for (let from = 0; from === 0 || from < line.length; from += columns) {
      shown.push({ at: now, text: line.slice(from, from + columns), kind });
    }
  }
};
const type = (command) => {
  now += 0.3 + command.length / typedPerSecond;
  show(`$ ${command}`, 'command');
};

const env = { ...process.env, CLOUDYARD_LOG_LEVEL: 'warn' };
type('npm start | tee -i start.txt');
const started = performance.now();
const server = spawn('npm', ['start'], { env, stdio: ['ignore', 'pipe', 'inherit'], detached: true });
let output = '';
for await (const chunk of server.stdout) {
  output += chunk;
  if (/webhooks .*\n\n/.test(output)) break;
}
writeFileSync('start.txt', output);
now += Math.min((performance.now() - started) / 1000, longestWait);
show(
  output
    .replace(/(\$)\S{20,}/, '$1…')
    .split('\n\n  Region ')[0]
    .trimEnd(),
  'output',
);

now += 2;
show('\n# in a second terminal', 'comment');
const shell = spawn('bash', { env, stdio: ['pipe', 'pipe', 'inherit'] });
shell.stdin.write('exec 2>&1\n');
const marker = '--- done ---';
for (const command of commands) {
  type(command);
  const begun = performance.now();
  shell.stdin.write(`${command}\necho; echo '${marker}'\n`);
  let text = '';
  while (!text.endsWith(`${marker}\n`)) text += (await once(shell.stdout, 'data'))[0];
  now += Math.min((performance.now() - begun) / 1000, longestWait);
  const printed = text.slice(0, -marker.length - 2).replace(/\n$/, '');
  if (printed) show(printed, 'output');
}
shell.stdin.end();
process.kill(-server.pid, 'SIGINT');
writeFileSync('docs/cast.svg', svg());

function svg() {
  const length = now + hold;
  const percent = (seconds) => `${((100 * seconds) / length).toFixed(2)}%`;
  const [width, lineHeight, margin] = [columns * 7.2 + 32, 17, 16];
  const height = rows * lineHeight + 2 * margin;
  const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const keyframes = [];
  const texts = shown.map(({ at, text, kind }, line) => {
    keyframes.push(`@keyframes l${line}{0%,${percent(at)}{opacity:0}${percent(at + 0.01)},100%{opacity:1}}`);
    return `<text class="${kind}" style="animation-name:l${line}" y="${margin + 12 + line * lineHeight}">${escape(text)}</text>`;
  });
  const scrolls = shown
    .map(({ at }, line) => ({ at, by: Math.max(0, line + 1 - rows) * lineHeight }))
    .filter(({ by }) => by > 0)
    .map(({ at, by }) => `${percent(at)}{transform:translateY(-${by}px)}`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>A terminal: start Cloudyard, create a file share, write a file to it over NFS</title>
<style>
text{font:12px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#d0d7de;animation:${length.toFixed(1)}s step-end infinite}
.command{fill:#7ee787}.comment{fill:#8b949e}
g{animation:scroll ${length.toFixed(1)}s step-end infinite}
${keyframes.join('\n')}
@keyframes scroll{0%{transform:none}${scrolls.join('')}}
</style>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<svg x="${margin}" y="${margin}" width="${width - 2 * margin}" height="${height - 2 * margin}" viewBox="0 ${margin} ${width - 2 * margin} ${height - 2 * margin}">
<g>
${texts.join('\n')}
</g>
</svg>
</svg>
`;
}
