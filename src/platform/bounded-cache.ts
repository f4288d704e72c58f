/** The results of `compute`, each computed once. All are dropped when there are `most`. */
export function boundedCache<Key, Value>(most: number, compute: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) {
      value = compute(key);
      if (known.size >= most) known.clear();
      known.set(key, value);
    }
    return value;
  };
}
