import { describe, expect, it } from 'vitest';
import { failedFiles, type FileOutcome, type Outcome, summaryOf } from './outcome.ts';

const file = (path: string, rest: Partial<FileOutcome> = {}): FileOutcome => ({
  ...{ path, seconds: 1, passed: ['a', 'b'], failed: [], skipped: [], errors: 0 },
  ...rest,
});
const outcome = (...files: FileOutcome[]): Outcome => ({ files, errorsElsewhere: 0 });
const last = (first: Outcome, repeated: Outcome | null = null) => summaryOf(first, repeated).lines.at(-1);

describe('the summary of a run', () => {
  it('names the files to repeat, also one with an error outside its cases', () => {
    const failed = file('failed.ts', { failed: ['c'] });
    const broken = file('broken.ts', { passed: [], errors: 1 });
    expect(failedFiles(outcome(file('good.ts'), failed, broken))).toEqual(['failed.ts', 'broken.ts']);
  });

  it('counts a case that passes when its file is repeated, and names it', () => {
    const first = outcome(file('good.ts'), file('slow.ts', { passed: ['a'], failed: ['b'], errors: 1 }));
    expect(last(first)).toBe('3 passed, 2 failed');
    const { lines, failures } = summaryOf(first, outcome(file('slow.ts')));
    expect(lines).toContain('passed when repeated: slow.ts > b');
    expect(lines).toContain('no error when repeated: slow.ts');
    expect([lines.at(-1), failures]).toEqual(['4 passed, 0 failed', 0]);
  });

  it('fails when the repetition fails, or did not get to the file', () => {
    const first = outcome(file('one.ts', { failed: ['c'] }), file('two.ts', { failed: ['c'] }));
    const { lines, failures } = summaryOf(first, outcome(file('one.ts', { passed: ['a', 'c'], failed: ['b'] })));
    expect(failures).toBe(2);
    expect(lines.filter((line) => line.startsWith('failed'))).toEqual(['failed: one.ts > b', 'failed: two.ts > c']);
  });

  it('fails for an error that belongs to no file, which cannot be repeated', () => {
    expect(summaryOf({ files: [file('good.ts')], errorsElsewhere: 1 }, null).failures).toBe(1);
  });
});
