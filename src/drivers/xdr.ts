/** Encodes parameters of ONC RPC calls. Source: RFC 4506 (XDR). */

/** Numbers of 32 bits. */
export function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => bytes.writeUInt32BE(value >>> 0, index * 4));
  return bytes;
}

/** A text or bytes of variable length. */
export function opaque(data: Buffer | string): Buffer {
  const bytes = Buffer.from(data);
  return Buffer.concat([words(bytes.length), bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}
