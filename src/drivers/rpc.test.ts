import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { callNull, NFS4 } from './rpc.ts';

it.each([0, 3, 8])('a reply of %d bytes is refused', async (length) => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(0x8000_0000 + length);
  const server = createServer((socket) =>
    socket.on('error', () => {}).end(Buffer.concat([head, Buffer.alloc(length)])),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await expect(callNull({ host: '127.0.0.1', port }, NFS4)).rejects.toThrow('refused');
});
