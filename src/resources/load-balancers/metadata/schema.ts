/** Requests of the older operations on the tags of a load balancer. */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Described, Nullable, ShortText } from '../../../http/shapes.ts';
import { maxTagChanges, maxTagLength } from '../../../tags/tags.ts';

export const ReplaceTags = Type.Record(Type.String(), Nullable(Type.String({ maxLength: maxTagLength })), {
  title: 'ReplaceLoadBalancerTags',
  propertyNames: Type.String({ minLength: 1, maxLength: maxTagLength }),
  maxProperties: maxTagChanges,
  description: 'Tags as a map from key to value; a key with null is ignored',
  examples: [{ team: 'web' }],
});
export type ReplaceTags = Static<typeof ReplaceTags>;

export const MetadataKey = Type.Object({ key: Described(ShortText, 'Key of the tag') });
export const OptionalMetadataKey = Type.Object({
  key: Type.Optional(Described(ShortText, 'Key of the tag; without it nothing is deleted')),
});
