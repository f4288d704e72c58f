/** Creates images (OCI layouts of random layers) and pushes and pulls them with skopeo. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface TestImage {
  /** In the notation of skopeo. */
  source: string;
  layers: string[];
  /** Bytes of all blobs, including the manifest. */
  size: number;
  manifest: string;
}

/** Writes an image with layers of these sizes, of random bytes. */
export function makeImage(folder: string, sizes: number[]): TestImage {
  const blobs = join(folder, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  let size = 0;
  const put = (mediaType: string, bytes: Buffer) => {
    const hex = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(blobs, hex), bytes);
    size += bytes.length;
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  // skopeo does not compress data that begins like gzip, and no test unpacks the layers.
  const gzip = Buffer.from([0x1f, 0x8b, 0x08]);
  const layer = (bytes: number) => Buffer.concat([gzip, randomBytes(bytes - gzip.length)]);
  const layers = sizes.map((each) => put('application/vnd.oci.image.layer.v1.tar+gzip', layer(each)));
  const diffIds = layers.map(({ digest }) => digest);
  const config = put(
    'application/vnd.oci.image.config.v1+json',
    json({ architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: diffIds } }),
  );
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = put(mediaType, json({ schemaVersion: 2, mediaType, config, layers }));
  const annotations = { 'org.opencontainers.image.ref.name': 'latest' };
  writeFileSync(join(folder, 'index.json'), json({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] }));
  writeFileSync(join(folder, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  return { source: `oci:${folder}:latest`, layers: diffIds, size, manifest: manifest.digest };
}

export type Skopeo = ReturnType<typeof startSkopeo>;

/** `ended` resolves with its exit code and output. */
export function startSkopeo(args: string[]) {
  const child = spawn('skopeo', ['--insecure-policy', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const ended = new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
  return { child, ended };
}

const plain = { to: '--dest-tls-verify=false', from: '--src-tls-verify=false' };

/** `credentials`: `name:secret`. `image`: `host:port/prefix/name:tag`. */
export function push(source: string, image: string, credentials: string): Skopeo {
  return startSkopeo([
    'copy',
    '--preserve-digests',
    plain.to,
    '--dest-creds',
    credentials,
    source,
    `docker://${image}`,
  ]);
}

export function pull(image: string, folder: string, credentials: string): Skopeo {
  return startSkopeo([
    'copy',
    '--preserve-digests',
    plain.from,
    '--src-creds',
    credentials,
    `docker://${image}`,
    `oci:${folder}:latest`,
  ]);
}

export function deleteImage(image: string, credentials: string): Skopeo {
  return startSkopeo(['delete', '--tls-verify=false', '--creds', credentials, `docker://${image}`]);
}
