import { describe, expect, it } from 'vitest';
import { keyOf, type Keys, withKeys } from './idempotency-keys.ts';

const url = '/cloud/v1/networks/1/1';

/** Sends a form of one request with this body, and returns its key. */
async function keyOfForm(keys: Keys, body: string, fails = false): Promise<string | null> {
  let key: string | null = null;
  const sent = withKeys(keys, async () => {
    await Promise.resolve();
    key = keyOf(url, body);
    if (fails) throw new Error('no response');
  });
  if (fails) await expect(sent).rejects.toThrow('no response');
  else await sent;
  return key;
}

describe('the key of a POST', () => {
  it('is the same until its form succeeds', async () => {
    const keys: Keys = new Map();
    const key = await keyOfForm(keys, 'a', true);
    expect(key).toMatch(/^\w+$/);
    expect(await keyOfForm(keys, 'b', true)).not.toBe(key);
    expect(await keyOfForm(keys, 'a')).toBe(key);
    expect(await keyOfForm(keys, 'a')).not.toBe(key);
  });

  it('is another one when the form is opened again', async () => {
    const key = await keyOfForm(new Map(), 'a', true);
    expect(await keyOfForm(new Map(), 'a')).not.toBe(key);
  });

  it('is absent outside of forms', async () => {
    await keyOfForm(new Map(), 'a', true);
    expect(keyOf(url, 'a')).toBeNull();
  });
});
