/** Requests of the older operations on the tags of a load balancer. */
import { Type } from 'typebox';
import { Described, Nullable } from '../../../http/shapes.ts';
import { AnyTagKey, maxTagChanges, maxTagLength, maxTags } from '../../../tags/tags.ts';

/** These operations take values that `CreateTags` rejects: any text of the length. */
const AnyValue = Type.String({ maxLength: maxTagLength });

export const AddTags = Type.Record(Type.String(), AnyValue, {
  title: 'LoadBalancerMetadata',
  propertyNames: AnyTagKey,
  maxProperties: maxTags,
  description: 'At most 64 tags as a map from key to value: keys of 1 to 255 characters, values of up to 255',
  examples: [{ team: 'web' }],
});

export const ReplaceTags = Type.Record(Type.String(), Nullable(AnyValue), {
  title: 'ReplaceLoadBalancerTags',
  propertyNames: AnyTagKey,
  maxProperties: maxTagChanges,
  description: 'Tags as a map from key to value; a key with null is ignored',
  examples: [{ team: 'web' }],
});

export const OptionalMetadataKey = Type.Object({
  key: Type.Optional(Described(AnyTagKey, 'Key of the tag; without it nothing is deleted')),
});
