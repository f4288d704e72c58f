/** SQL of the certificate from ACME, and its encryption. */
import { type Db, prepared, preparedRow } from '../db.ts';
import { type Keyring, reencryptAll } from '../encryption.ts';
import type { PendingChallenges } from './challenges.ts';

export interface AcmeRow {
  version: number;
  state: Buffer | null;
  /** Whether the next attempt must wait. By the clock of the database, which all servers share. */
  paused: boolean;
  failures: number;
  error: string | null;
}

/** What is kept between two requests for a certificate. */
export interface AcmeState {
  /** The files of the account, by path. */
  account: Record<string, string>;
  certificate: string;
  key: string;
  /** URL of the ACME server that issued the certificate. Absent before the first certificate. */
  server?: string;
}

const context = 'acme_certificate';

const encrypted = (keyring: Keyring, state: AcmeState): Buffer =>
  keyring.encrypt(Buffer.from(JSON.stringify(state)), context);

/** @throws EncryptionError */
export const decryptState = (keyring: Keyring, state: Buffer): AcmeState =>
  JSON.parse(keyring.decrypt(state, context).toString()) as AcmeState;

/** The longest pause between two attempts. A longer one is of a time before the clock of the database was set back. */
export const maxRetrySeconds = 6 * 3600;

/** Null before the first request of a certificate. */
export const findRow = preparedRow<AcmeRow, [], Db>(
  'acme_certificate',
  `select version, state, failures, error,
     coalesce(next_attempt_at between now() and now() + interval '${maxRetrySeconds} seconds', false) as paused
   from acme_certificates where id = 1`,
);

/** Records that a server requests a certificate, for at most `seconds`. */
export const beginAttempt = prepared<object, [seconds: number], Db>(
  'acme_begin',
  `insert into acme_certificates (id, issuing_until) values (1, now() + $1 * interval '1 second')
   on conflict (id) do update set issuing_until = excluded.issuing_until`,
);

const succeed = prepared(
  'acme_succeed',
  `with old as (delete from acme_challenges)
   update acme_certificates set state = $1, version = version + 1, issuing_until = null,
     next_attempt_at = now() + $2 * interval '1 second', failures = 0, error = null where id = 1`,
);

/** No server requests another certificate for `pauseSeconds`. */
export async function storeState(db: Db, keyring: Keyring, state: AcmeState, pauseSeconds: number): Promise<void> {
  await succeed(db, encrypted(keyring, state), pauseSeconds);
}

const fail = prepared(
  'acme_fail',
  `with old as (delete from acme_challenges)
   update acme_certificates set issuing_until = null, failures = failures + 1, error = $1,
     next_attempt_at = now() + $2 * interval '1 second', state = coalesce(state, $3) where id = 1`,
);

/** Keeps the account before the first certificate is issued, so that the next attempt does not register another one. */
export async function storeFailure(
  db: Db,
  keyring: Keyring,
  failure: { error: string; retrySeconds: number; account: AcmeState['account'] },
): Promise<void> {
  const { error, retrySeconds, account } = failure;
  await fail(db, error, retrySeconds, encrypted(keyring, { account, certificate: '', key: '' }));
}

/** Every server answers the challenge, because the CA may reach any of them. */
export const storeChallenge = prepared<object, [token: string, response: string], Db>(
  'acme_challenge_insert',
  `insert into acme_challenges (token, response) values ($1, $2) on conflict (token) do update set response = excluded.response`,
);

/** All challenges of the certificate that is being requested. */
export const findChallenges = preparedRow<PendingChallenges, [], Db>(
  'acme_challenges',
  `select coalesce((select jsonb_object_agg(token, response) from acme_challenges), '{}') as responses,
     coalesce((select issuing_until > now() from acme_certificates where id = 1), false) as issuing`,
);

/** See `reencryptAll`. */
export function reencryptAcme(db: Db, keyring: Keyring): Promise<number> {
  return reencryptAll(keyring, () => context, {
    async after(id) {
      const row = id === null ? await findRow(db) : null;
      return row?.state ? [{ id: context, ciphertext: row.state }] : [];
    },
    async replace(_id, old, state) {
      await db.$client.query('update acme_certificates set state = $1 where state = $2', [state, old]);
    },
  });
}
