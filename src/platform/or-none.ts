/**
 * Converts the error of a missing file to `none`. Other errors (a broken disk, a lost mount) are not an answer: a link that
 * exists would count as removed.
 */
export function orNone<T>(none: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return none;
    throw error;
  };
}
