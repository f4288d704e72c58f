/**
 * Finds out why a manifest is invalid if distribution responds with a server error: version 2.8 responds 500 to OCI manifests
 * whose `schemaVersion` is not 2, and to some malformed digests.
 */

/** A larger manifest is not checked, because parsing it would block other requests. */
const maxBytes = 256 * 1024;

const hexLengths: Record<string, number> = { sha256: 64, sha384: 96, sha512: 128 };

/** `add` collects the body. `problem`: null if the body is valid, incomplete JSON or too large. */
export function manifestBody() {
  let parts: Buffer[] = [];
  let bytes = 0;
  return {
    add(part: Buffer): void {
      bytes += part.length;
      if (bytes <= maxBytes) parts.push(part);
      else parts = [];
    },
    problem(): string | null {
      if (bytes === 0 || bytes > maxBytes) return null;
      try {
        return problemOf(JSON.parse(Buffer.concat(parts).toString('utf8')));
      } catch {
        return null;
      }
    },
  };
}

interface Manifest {
  schemaVersion?: unknown;
  config?: unknown;
  layers?: unknown;
  manifests?: unknown;
}

function problemOf(content: unknown): string | null {
  const { schemaVersion, config, layers, manifests } = (content ?? {}) as Manifest;
  if (schemaVersion !== 2) return 'schemaVersion must be 2';
  const descriptors = [config, layers, manifests].flat() as ({ digest?: unknown } | null | undefined)[];
  const isMalformed = descriptors.some((each) => typeof each?.digest === 'string' && !isWellFormed(each.digest));
  return isMalformed ? 'a digest is malformed' : null;
}

function isWellFormed(digest: string): boolean {
  const [, algorithm = '', hex = ''] = /^([a-z0-9]+):([0-9a-f]+)$/.exec(digest) ?? [];
  return Object.hasOwn(hexLengths, algorithm) && hex.length === hexLengths[algorithm];
}
