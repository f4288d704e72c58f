/** What a run of the tests found: of its files, in two runs, and as the lines that close .ci/run. */

/** The names of the cases of a file, by how they ended. */
export interface FileOutcome {
  readonly path: string;
  readonly seconds: number;
  readonly passed: readonly string[];
  readonly failed: readonly string[];
  readonly skipped: readonly string[];
  /** Thrown outside all cases, such as while the file was loaded. */
  errors: number;
}

export interface Outcome {
  readonly files: readonly FileOutcome[];
  /** Errors that belong to no file. */
  readonly errorsElsewhere: number;
}

const listedFiles = 15;
const isFailed = ({ failed, errors }: FileOutcome) => failed.length > 0 || errors > 0;

/** The paths of the files with a case or a hook that failed. */
export function failedFiles({ files }: Outcome): string[] {
  return files.filter(isFailed).map(({ path }) => path);
}

/** The slowest files, what passed only when its file was repeated, what failed, and the counts as the last line. */
export function summaryOf(first: Outcome, repeated: Outcome | null): { lines: string[]; failures: number } {
  const again = new Map(repeated?.files.map((file) => [file.path, file]));
  const final = first.files.map((file) => (isFailed(file) ? (again.get(file.path) ?? file) : file));
  const errorsElsewhere = first.errorsElsewhere + (repeated?.errorsElsewhere ?? 0);
  const passed = sum(final, (file) => file.passed.length);
  const skipped = sum(final, (file) => file.skipped.length);
  const failures = sum(final, (file) => file.failed.length + file.errors) + errorsElsewhere;
  const lines = [
    'slowest test files:',
    ...slowest(first).map(({ path, seconds }) => `  ${seconds.toFixed(1).padStart(6)} s  ${path}`),
    ...first.files.flatMap((file) => passedWhenRepeated(file, again.get(file.path))),
    ...final.flatMap((file) => file.failed.map((name) => `failed: ${file.path} > ${name}`)),
    ...final.filter(({ errors }) => errors > 0).map(({ path, errors }) => `errors outside cases: ${errors} in ${path}`),
    ...(errorsElsewhere > 0 ? [`errors outside test files: ${errorsElsewhere}`] : []),
    ...(skipped > 0 ? [`skipped: ${skipped}`] : []),
    `${passed} passed, ${failures} failed`,
  ];
  return { lines, failures };
}

function passedWhenRepeated(file: FileOutcome, again: FileOutcome | undefined): string[] {
  if (!again || isFailed(again)) return [];
  const named = file.failed.map((name) => `passed when repeated: ${file.path} > ${name}`);
  return file.errors > 0 ? [...named, `no error when repeated: ${file.path}`] : named;
}

function slowest({ files }: Outcome): FileOutcome[] {
  return [...files].sort((a, b) => b.seconds - a.seconds).slice(0, listedFiles);
}

function sum(files: readonly FileOutcome[], countOf: (file: FileOutcome) => number): number {
  return files.reduce((total, file) => total + countOf(file), 0);
}
