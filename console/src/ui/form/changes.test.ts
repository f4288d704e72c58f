import { describe, expect, it } from 'vitest';
import { editedTags } from './changes.ts';

describe('the edit of tags', () => {
  it('removes a tag with the name of a property that all objects have', () => {
    const before = [{ key: 'constructor', value: 'a', read_only: false }];
    expect(editedTags(before, {})).toEqual({ constructor: null });
    expect(editedTags(before, { constructor: 'a' })).toBeUndefined();
  });
});
