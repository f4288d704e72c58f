import Fastify from 'fastify';
import { Type } from 'typebox';
import { expect, it } from 'vitest';
import { lazyCompilers } from './lazy-compilers.ts';
import { Nullable } from './shapes.ts';

const Part = Type.Object({ count: Nullable(Type.Integer()), note: Type.Optional(Nullable(Type.String())) });
const Shape = Type.Object({
  text: Nullable(Type.String({ maxLength: 3 })),
  at: Nullable(Type.String({ format: 'date-time' })),
  isOn: Nullable(Type.Boolean()),
  part: Nullable(Part),
  parts: Nullable(Type.Array(Nullable(Part))),
  mode: Nullable(Type.Enum(['rw', 'ro'])),
  ratio: Type.Union([Type.Number(), Part]),
});

async function written(answer: object): Promise<string> {
  const app = Fastify();
  lazyCompilers(app as never);
  app.get('/', { schema: { response: { 200: Shape } } }, () => answer);
  return (await app.inject('/')).body;
}

it('writes values and null of parts that may be null, without fields that the shape does not have', async () => {
  const part = { count: 1, note: 'a "b"', secret: 'x' };
  expect(
    await written({
      text: 'abc',
      at: '2030-01-01T00:00:00Z',
      isOn: false,
      part,
      parts: [part, null],
      mode: 'ro',
      ratio: 2,
    }),
  ).toBe(
    '{"text":"abc","at":"2030-01-01T00:00:00Z","isOn":false,"part":{"count":1,"note":"a \\"b\\""},' +
      '"parts":[{"count":1,"note":"a \\"b\\""},null],"mode":"ro","ratio":2}',
  );
  const nothing = { text: null, at: null, isOn: null, part: null, parts: null, mode: null, ratio: { count: null } };
  expect(await written(nothing)).toBe(JSON.stringify(nothing));
});

it('does not validate the value of a part that may be null, as it does not validate others', async () => {
  const answer = { text: 'longer than 3', at: null, isOn: null, part: null, parts: null, mode: null, ratio: 1 };
  expect(await written(answer)).toBe(JSON.stringify(answer));
});
