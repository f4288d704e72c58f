/** Published states are JSON, encrypted, because they contain private keys. */
import type { Keyring } from '../platform/encryption.ts';
import type { Key } from './store.ts';

/** The context of a ciphertext: a region, kind and id. */
export const contextOf = (place: [regionId: number, kind: string, id: string]) => `published:${place.join(':')}`;

/** The place of a state is authenticated, so a ciphertext cannot be moved to another resource or region. */
export function createStateCodec(keyring: Keyring, regionId: number) {
  const context = ({ kind, id }: Key) => contextOf([regionId, kind, id]);
  const text = (key: Key, ciphertext: Uint8Array) => keyring.decrypt(ciphertext, context(key)).toString('utf8');
  return {
    encode: (key: Key, json: string) => keyring.encrypt(Buffer.from(json), context(key)),
    /** @throws EncryptionError */
    decode: (key: Key, ciphertext: Uint8Array) => JSON.parse(text(key, ciphertext)) as unknown,
    /** The JSON of a state, to compare states. @throws EncryptionError */
    text,
  };
}

export type StateCodec = ReturnType<typeof createStateCodec>;

export interface DecodedStates {
  /** By id. */
  states: Map<string, unknown>;
  /** Why the others cannot be decrypted. */
  undecodable: Map<string, Error>;
}

/** Decodes the states of one kind; null: removed. */
export function decodeStates(codec: StateCodec, published: (Key & { state: Uint8Array | null })[]): DecodedStates {
  const states = new Map<string, unknown>();
  const undecodable = new Map<string, Error>();
  for (const { kind, id, state } of published) {
    if (state === null) continue;
    try {
      states.set(id, codec.decode({ kind, id }, state));
    } catch (error) {
      undecodable.set(id, error as Error);
    }
  }
  return { states, undecodable };
}
