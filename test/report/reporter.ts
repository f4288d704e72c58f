/** Writes the outcome of a run, as JSON, to the file that TEST_OUTCOME names. .ci/run prints it with main.ts. */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import type { FileOutcome, Outcome } from './outcome.ts';

export default class OutcomeReporter implements Reporter {
  #root = '';

  onInit(vitest: Vitest): void {
    this.#root = vitest.config.root;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly object[]): void {
    const file = process.env['TEST_OUTCOME'];
    if (!file) return;
    const files = modules.map((module) => this.#outcomeOf(module));
    const errorsElsewhere = unhandledErrors.filter((err) => {
      const origin = files.find(({ path }) => path === this.#originOf(err));
      if (origin) origin.errors += 1;
      return !origin;
    }).length;
    writeFileSync(file, JSON.stringify({ files, errorsElsewhere } satisfies Outcome));
  }

  #outcomeOf(module: TestModule): FileOutcome {
    const cases = [...module.children.allTests()];
    const named = (state: string) => cases.filter((each) => each.result().state === state).map((each) => each.fullName);
    // A file that cannot be loaded, or a hook of a file or suite, fails the run without failing a case.
    const suites = [module, ...module.children.allSuites()];
    const errors = module.state() === 'failed' ? suites.flatMap((suite) => suite.errors()).length : 0;
    return {
      path: relative(this.#root, module.moduleId),
      seconds: module.diagnostic().duration / 1000,
      ...{ passed: named('passed'), failed: named('failed'), skipped: named('skipped'), errors },
    };
  }

  /** The file whose tests ran when an error was thrown outside all cases. */
  #originOf(err: object): string | undefined {
    return 'VITEST_TEST_PATH' in err ? relative(this.#root, String(err.VITEST_TEST_PATH)) : undefined;
  }
}
