import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';

/** One line for each file, sorted by name, in the format of `sha256sum --check`. */
export async function checksums(files: string[]): Promise<string> {
  const lines = await Promise.all(
    files.map(async (file) => {
      const hash = createHash('sha256');
      for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
      return { name: basename(file), digest: hash.digest('hex') };
    }),
  );
  return lines
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, digest }) => `${digest}  ${name}\n`)
    .join('');
}
