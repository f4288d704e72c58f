/** False for text that PostgreSQL cannot hold, neither as text nor in JSON: NUL characters, and halves of surrogate pairs. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

export const storableText = 'must not have NUL characters or halves of surrogate pairs';
