/**
 * Sends blobs from the disk. Distribution decides whether the client may read the blob. The gate then sends the bytes
 * itself, because a copy through the socket of distribution halves the speed of pulls.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Layout } from '../layout.ts';
import { type Forward, headersOf } from './forward.ts';
import type { Target } from './target.ts';

/** The size of each of the two buffers that a client keeps in memory. */
const partBytes = 128 * 1024;

/** Resolves with false if distribution must respond: to a range request, with a refusal, or for a missing blob. */
export async function sendBlob(
  request: IncomingMessage,
  response: ServerResponse,
  { url, reference }: Target,
  { layout, forward }: { layout: Layout; forward: Forward },
): Promise<boolean> {
  if (request.headers.range !== undefined) return false;
  const answer = await forward.head(request, url).catch(() => null);
  if (answer?.statusCode !== 200) return false;
  await using file = await open(layout.data(reference)).catch(() => null);
  if (!file) return false;
  if ((await file.stat()).size !== Number(answer.headers['content-length'])) return false;
  response.writeHead(200, headersOf(answer.rawHeaders));
  await copy(file, request, response);
  return true;
}

/**
 * Sends the file, and stops without an error if the client disconnects. It reuses two buffers: a stream allocates memory
 * for each part, and spends a third of its time on garbage collection.
 */
async function copy(file: FileHandle, { socket }: IncomingMessage, response: ServerResponse): Promise<void> {
  let proceed = () => {};
  const onClose = () => proceed();
  response.once('close', onClose);
  const write = (part: Buffer) =>
    new Promise<void>((resolve) => {
      proceed = resolve;
      response.write(part, () => resolve());
    });
  let [next, other] = [Buffer.allocUnsafeSlow(partBytes), Buffer.allocUnsafeSlow(partBytes)];
  let written: Promise<void> | null = null;
  try {
    for (;;) {
      const { bytesRead } = await file.read(next, 0, partBytes);
      await written;
      if (socket.destroyed) return;
      if (bytesRead === 0) break;
      written = write(next.subarray(0, bytesRead));
      [next, other] = [other, next];
    }
    response.end();
  } finally {
    response.off('close', onClose);
  }
}
