/**
 * Damaged files and folders of the storage: they exist and cannot be read, because of an error of the disk or of the
 * filesystem. Work on the others continues.
 */
import type { Logger } from '../../platform/log.ts';

/**
 * Linux: EIO, EISDIR, ELOOP, EBADMSG and EUCLEAN; Node has no names for the last two. Errors of a lost mount and of shortages are
 * not among them, because they concern all files.
 */
const errnos = new Set([-5, -21, -40, -74, -117]);

/** Whether the error is that of a damaged file or folder. */
export function isDamage(error: unknown): error is NodeJS.ErrnoException {
  return errnos.has((error as NodeJS.ErrnoException | null)?.errno ?? 0);
}

const messages =
  /: (Input\/output error|Is a directory|Too many levels of symbolic links|Bad message|Structure needs cleaning)$/;

/** Whether these lines, which a program wrote to stderr, report damaged files only. */
export function reportsDamage(stderr: string): boolean {
  return stderr
    .trim()
    .split('\n')
    .every((line) => messages.test(line));
}

export type Damage = ReturnType<typeof createDamage>;

/** Logs each damaged file once, until a pass does not find it. */
export function createDamage(log: Logger) {
  let known = new Set<string>();
  let found = new Set<string>();
  return {
    /** Runs work, which ends at the first damaged file. Returns whether it completed. */
    async tolerate(work: () => Promise<unknown>): Promise<boolean> {
      try {
        await work();
        return true;
      } catch (error) {
        if (!isDamage(error)) throw error;
        const file = error.path ?? error.message;
        if (!known.has(file) && !found.has(file)) {
          log.error({ err: error, file }, 'a file of registries cannot be read');
        }
        found.add(file);
        return false;
      }
    },

    /** Called at the end of a complete pass. */
    endPass(): void {
      [known, found] = [found, new Set()];
    },

    /** For the status of the driver; empty if no file is known to be damaged. */
    detail(): string {
      const [first, ...others] = new Set([...known, ...found]);
      if (first === undefined) return '';
      return `; cannot read ${first}${others.length > 0 ? ` and ${others.length} more` : ''}`;
    },
  };
}
