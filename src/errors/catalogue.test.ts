import { expect, it } from 'vitest';
import { inUse } from './catalogue.ts';

it('names the resources that use another one, in the plural if there are several', () => {
  const messageFor = (kind: string, ids: string[], count = ids.length) =>
    inUse('project', 7, [{ kind, count, ids }]).message;
  const rest = 'delete what uses it first';
  expect(messageFor('registry', ['1'])).toBe(`project 7 is in use by 1 registry (1); ${rest}`);
  expect(messageFor('registry', ['1', '2'])).toBe(`project 7 is in use by 2 registries (1, 2); ${rest}`);
  expect(messageFor('lifecycle policy', ['1', '2', '3'], 4)).toBe(
    `project 7 is in use by 4 lifecycle policies (1, 2, 3, …); ${rest}`,
  );
  expect(messageFor('API key', ['a', 'b'])).toBe(`project 7 is in use by 2 API keys (a, b); ${rest}`);
  expect(messageFor('network', ['a', 'b'])).toBe(`project 7 is in use by 2 networks (a, b); ${rest}`);
});
