/** False for text that PostgreSQL cannot store as text or in JSON: NUL characters and unpaired surrogates. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

export const storableText = 'must not contain NUL characters or unpaired surrogates';
