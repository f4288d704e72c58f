/** The report of a run as Markdown. */
import { execFileSync } from 'node:child_process';
import { cpus, totalmem } from 'node:os';
import { type Figures, quantile } from './figures.ts';

interface Run {
  figures: Figures;
  seconds: number;
  clients: number;
  drivers: string;
  seed: number;
  /** Differences between the host and the rows at the end. */
  hostFailures: string[];
}

export function reportOf({ figures, seconds, clients, drivers, seed, hostFailures }: Run): string {
  const failures = [...figures.failures, ...hostFailures];
  const kills = Object.values(figures.kills).reduce((sum, count) => sum + count, 0);
  const serverErrors = Object.entries(figures.statuses)
    .filter(([status]) => Number(status) >= 500 && !['503', '507'].includes(status))
    .reduce((sum, [, count]) => sum + count, 0);
  const ms = (value: number) => `${(value / 1000).toFixed(1)} s`;
  const silences = Object.keys(figures.kills)
    .sort()
    .map((kind) => {
      const of = figures.silences[kind] ?? [];
      return `| ${kind} | ${figures.kills[kind]} | ${ms(quantile(of, 0.5))} | ${ms(Math.max(0, ...of))} |`;
    });
  const statuses = Object.entries(figures.statuses).map(([status, count]) => `| ${status} | ${count} |`);
  return `# Kills report

Written by \`npm run kills\` ([reliability](reliability.md)).

| | |
|---|---|
| Date | ${new Date().toISOString().slice(0, 10)} |
| Commit | ${commit()} |
| Machine | ${cpus().length} processors, ${Math.round(totalmem() / 1024 ** 3)} GiB |
| Drivers | ${drivers} |
| Duration | ${Math.round(seconds / 60)} min |
| Clients at a time | ${clients} |
| Seed | ${seed} |
| Operations acknowledged | ${figures.operations} |
| Kills | ${kills} |
| Requests without an answer, repeated | ${figures.unanswered} |
| Comparisons of a client with the model | ${figures.comparisons} |
| Answers 5xx other than 503 and 507 | ${serverErrors} |
| Lost, doubled, stuck or otherwise wrong | ${failures.length} |

| Killed | Kills | Silence of the API, median | Longest |
|---|---|---|---|
${silences.join('\n')}

| Status | Answers |
|---|---|
${statuses.join('\n')}
${failures.length === 0 ? '' : `\n## Wrong\n\n${failures.map((failure) => `\`\`\`\n${failure}\n\`\`\``).join('\n')}\n`}`;
}

function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') === '' ? '' : ', with changes'}`;
}
