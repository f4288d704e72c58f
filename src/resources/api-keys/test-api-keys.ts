/** Builders for tests of API keys. */
import { expect } from 'vitest';
import type { Cloudyard, RequestOptions } from '../../../test/harness.ts';
import type { Container } from './schema.ts';

export const web: Container = { name: 'web', namespace: 'default' };

/** An hour from now. */
export const soon = (): string => new Date(Date.now() + 3_600_000).toISOString();

let made = 0;
export const keyBody = (changes: object = {}) => ({ name: `key-${made++}`, containers: [web], ...changes });

export function keyBuilders(cloud: Cloudyard) {
  return {
    async newClient() {
      const client = await cloud.newClient();
      const options = { token: client.token };
      const keys = `/cloud/v1/caas/keys/${client.projectId}/1`;
      const create = (body: object, more: RequestOptions = options) => cloud.post(keys, body, more);
      const one = (name: string) => `${keys}/${encodeURIComponent(name)}`;
      return { ...client, options, keys, create, one };
    },

    /** The answer to a proxy that authorizes this key for a container. */
    async authorize(key: string | undefined, container: Container = web, query = {}): Promise<string | number> {
      const url = `/cloudyard/v1/authorize?${new URLSearchParams({ ...container, ...query })}`;
      const answer = await cloud.get(url, { token: null, headers: key === undefined ? {} : { 'x-api-key': key } });
      if (answer.status === 204) return 204;
      expect(answer.body.message).toBeTruthy();
      return `${answer.status} ${String(answer.headers['x-cloudyard-reason'])}`;
    },
  };
}
