/**
 * Writes a summary of the run to the file that TEST_SUMMARY names: the slowest test files, every case that passed at the
 * second attempt, every case that failed, and, as the last line, the counts.
 */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

const listedFiles = 15;

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const file = process.env['TEST_SUMMARY'];
    if (file) writeFileSync(file, `${summaryOf(modules, unhandledErrors.length).join('\n')}\n`);
  }
}

function summaryOf(modules: readonly TestModule[], unhandledErrors: number): string[] {
  const cases = modules.flatMap((module) => [...module.children.allTests()]);
  const inState = (state: string) => cases.filter((each) => each.result().state === state);
  const [passed, failed, skipped] = [inState('passed'), inState('failed'), inState('skipped')];
  // A file that cannot be loaded, and an error outside every case, fail the run without failing a case.
  const broken = modules.filter((module) => module.state() === 'failed' && module.errors().length > 0);
  return [
    'slowest test files:',
    ...slowest(modules).map(({ name, seconds }) => `  ${seconds.toFixed(1).padStart(6)} s  ${name}`),
    ...passed.filter((each) => each.diagnostic()?.flaky).map((each) => `retried: ${nameOf(each)}`),
    ...failed.map((each) => `failed: ${nameOf(each)}`),
    ...broken.map((module) => `failed: ${pathOf(module)}`),
    ...(unhandledErrors > 0 ? [`errors outside tests: ${unhandledErrors}`] : []),
    ...(skipped.length > 0 ? [`skipped: ${skipped.length}`] : []),
    `${passed.length} passed, ${failed.length + broken.length + unhandledErrors} failed`,
  ];
}

function slowest(modules: readonly TestModule[]): { name: string; seconds: number }[] {
  const durations = modules.map((module) => ({ name: pathOf(module), seconds: module.diagnostic().duration / 1000 }));
  return durations.sort((a, b) => b.seconds - a.seconds).slice(0, listedFiles);
}

function nameOf(test: TestCase): string {
  return `${pathOf(test.module)} > ${test.fullName}`;
}

function pathOf(module: TestModule): string {
  return relative(process.cwd(), module.moduleId);
}
