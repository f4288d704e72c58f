/** Whether a field of the body, or something in it, is invalid. Such a field is absent from the valid fields, but it was given. */
export type IsInvalid = (path: string) => boolean;

/** A body without its invalid fields. A list with an invalid item is absent as a whole. */
export type ValidFields<Body> = Body extends (infer Item)[]
  ? ValidFields<Item>[]
  : Body extends object
    ? { [Name in keyof Body]?: ValidFields<Body[Name]> }
    : Body;
