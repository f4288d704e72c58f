/** Encrypts published states with the current key, so that older keys can be removed. */
import { type Db, prepared } from '../platform/db.ts';
import { type Keyring, reencryptAll } from '../platform/encryption.ts';
import { contextOf } from './state-codec.ts';

interface Row {
  region_id: number;
  kind: string;
  id: string;
  state: Buffer;
}
type Place = [regionId: number, kind: string, id: string];

const next = prepared<Row, Place>(
  'published_states_ciphertexts',
  `select region_id, kind, id, state from published_states
   where (region_id, kind, id) > ($1::int, $2::text, $3::text) and state is not null
   order by region_id, kind, id limit 100`,
);
const replace = prepared<never, [...Place, old: Buffer, state: Buffer]>(
  'published_states_replace_ciphertext',
  `update published_states set state = $5 where region_id = $1 and kind = $2 and id = $3 and state = $4`,
);

/** See `reencryptAll` of platform/encryption.ts. The ids that it passes are places as JSON. */
export function reencryptPublished(db: Db, keyring: Keyring): Promise<number> {
  const placeOf = (text: string | null) => (text === null ? [0, '', ''] : JSON.parse(text)) as Place;
  return reencryptAll(keyring, (text) => contextOf(placeOf(text)), {
    async after(last) {
      const rows = await next(db, ...placeOf(last));
      return rows.map((row) => ({ id: JSON.stringify([row.region_id, row.kind, row.id]), ciphertext: row.state }));
    },
    async replace(text, old, state) {
      await replace(db, ...placeOf(text), old, state);
    },
  });
}
