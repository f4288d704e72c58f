/** Requests and responses of L7 rules. */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  Described,
  Nullable,
  OrNull,
  PlaceFields,
  Uuid,
} from '../../../../http/shapes.ts';
import { statuses } from '../../shapes.ts';
import { L7Tags, TaskId } from '../schema.ts';

const meanings = {
  invert: 'Whether the result of the comparison is inverted',
  key: 'Name of the header or cookie, or field of the distinguished name (`CN`); required for HEADER, COOKIE, SSL_DN_FIELD',
  value:
    'Value to compare with, 1 to 255 characters. FILE_TYPE: the extension (`jpg`); SSL_CONN_HAS_CERT: `True`; ' +
    'SSL_VERIFY_RESULT: the number of the result',
};

const RuleType = Type.Enum(
  ['COOKIE', 'FILE_TYPE', 'HEADER', 'HOST_NAME', 'PATH', 'SSL_CONN_HAS_CERT', 'SSL_DN_FIELD', 'SSL_VERIFY_RESULT'],
  {
    title: 'L7RuleType',
    description:
      'What is compared. `HOST_NAME`: the host without its port, in any case; `PATH`: without the query; `HEADER`, ' +
      '`COOKIE`: each value of `key`; `FILE_TYPE`: the end of the path after the last dot; `SSL_…`: the client ' +
      'certificate, for TERMINATED_HTTPS listeners. These request no client certificate, so SSL_CONN_HAS_CERT and ' +
      'SSL_DN_FIELD never match, and SSL_VERIFY_RESULT matches 0',
  },
);
const CompareType = Type.Enum(['CONTAINS', 'ENDS_WITH', 'EQUAL_TO', 'REGEX', 'STARTS_WITH'], {
  title: 'L7RuleCompareType',
  description:
    'How it is compared. FILE_TYPE: EQUAL_TO or REGEX; SSL_CONN_HAS_CERT, SSL_VERIFY_RESULT: EQUAL_TO. `REGEX`: the value ' +
    'contains a match of the PCRE2 pattern, found within 1,000 steps; values of 512 bytes or more do not match',
});

const settings = {
  type: RuleType,
  compare_type: CompareType,
  value: Type.String({ minLength: 1, maxLength: 255, description: meanings.value }),
};
const options = {
  invert: Type.Optional(Type.Boolean({ description: `${meanings.invert}; false by default` })),
  key: Type.Optional(Described(Nullable(Type.String({ maxLength: 255 })), `${meanings.key}. Empty or null: none`)),
  tags: Type.Optional(L7Tags),
};

export const CreateL7Rule = Body('CreateL7Rule', [{ type: 'PATH', compare_type: 'STARTS_WITH', value: '/api/' }], {
  ...settings,
  ...options,
});
export type CreateL7Rule = Static<typeof CreateL7Rule>;

export const UpdateL7Rule = Body(
  'UpdateL7Rule',
  [{ value: '/api/v2/', invert: true }],
  { ...Type.Partial(Type.Object(settings)).properties, ...options },
  'Omitted fields are unchanged',
);
export type UpdateL7Rule = Static<typeof UpdateL7Rule>;

export const L7Rule = Component('L7Rule', {
  id: Described(Uuid, 'ID of the rule'),
  ...statuses,
  ...PlaceFields,
  compare_type: CompareType,
  invert: Type.Boolean({ description: meanings.invert }),
  key: OrNull.text(meanings.key),
  tags: Type.Array(Type.String(), { description: 'Labels' }),
  task_id: TaskId,
  type: RuleType,
  value: Type.String({ description: meanings.value }),
});
export type L7Rule = Static<typeof L7Rule>;
export const L7RuleCollection = Collection(L7Rule);
