import { expect, it } from 'vitest';
import type { Crossing } from '../../quota/crossings.ts';
import { thresholdMessage } from './desired.ts';

const client = { id: 2, name: 'Example', threshold: 80 };
const crossing = { regionId: 1, kind: 'volume_count', limit: 10, usage: 8 } as Crossing;
const textOf = (crossings: Crossing[]) => thresholdMessage(client, crossings, () => 'local').body.paragraphs[0];

it('the message counts the quotas that it lists', () => {
  expect(textOf([crossing])).toBe('Example (client 2) has reached 80 % of this quota:');
  const others = [crossing, { ...crossing, kind: 'volume_size' as const }];
  expect(textOf(others)).toBe('Example (client 2) has reached 80 % of these quotas:');
});
