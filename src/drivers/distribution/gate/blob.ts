/**
 * Sends blobs from the disk. Distribution decides whether the client may have one; the bytes then take the short way,
 * because a copy through its socket costs pulls half of their speed.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Layout } from '../layout.ts';
import { type Forward, headersOf } from './forward.ts';
import type { Target } from './target.ts';

/** As much as a slow client makes the gate keep in memory, twice. */
const partBytes = 128 * 1024;

/** Resolves with false when distribution has to answer: a part of a blob, a refusal, a blob that is gone. */
export async function sendBlob(
  request: IncomingMessage,
  response: ServerResponse,
  { url, reference }: Target,
  { layout, forward }: { layout: Layout; forward: Forward },
): Promise<boolean> {
  if (request.headers.range !== undefined) return false;
  const answer = await forward.head(request, url).catch(() => null);
  if (answer?.statusCode !== 200) return false;
  const file = await open(join(layout.blob(reference), 'data')).catch(() => null);
  if (!file) return false;
  try {
    if ((await file.stat()).size !== Number(answer.headers['content-length'])) return false;
    response.writeHead(200, headersOf(answer.rawHeaders));
    await copy(file, request, response);
    return true;
  } finally {
    await file.close();
  }
}

/**
 * Ends the response, or leaves it when its client goes away: that is no failure. The two buffers are used again and again;
 * a stream takes new memory for each part, and a third of its time goes into collecting it.
 */
async function copy(file: FileHandle, { socket }: IncomingMessage, response: ServerResponse): Promise<void> {
  let goOn = () => {};
  // Of the connection: a response that waits for the one before it is not told.
  const leave = () => goOn();
  socket.once('close', leave);
  const write = (part: Buffer) =>
    new Promise<void>((resolve) => {
      goOn = resolve;
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
    socket.off('close', leave);
  }
}
