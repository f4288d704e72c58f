/** Tables of regions of several hosts (docs/decisions/0052-several-hosts.md). Rows of other regions do not exist. */
import {
  bigint,
  boolean,
  check,
  foreignKey,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  uuid,
} from 'drizzle-orm/pg-core';
import { sql } from 'drizzle-orm';
import { bytes, instant } from '../platform/columns.ts';
import type { DriverStatus } from '../platform/driver-status.ts';

/** What a host reports with each renewal of its lease. */
export interface HostReport {
  drivers: DriverStatus[];
  /** Address groups and NFS groups that it holds. */
  heldGroups: string[];
  /** Null: it has not converged. */
  applied: AppliedStates | null;
  version: string;
}

export interface AppliedStates {
  /** The host has applied the states up to this revision, except those that are pending. */
  revision: number;
  /** The number of these states that it has not applied. */
  pending: number;
}

/** The hosts of regions. Times are of the clock of the database. */
export const hosts = pgTable(
  'hosts',
  {
    regionId: integer('region_id').notNull(),
    name: text('name').notNull(),
    address: text('address').notNull(),
    interface: text('interface'),
    /** What the operator requested: `active` or `draining`; `drained` when the host holds nothing. */
    state: text('state', { enum: ['active', 'draining', 'drained'] })
      .notNull()
      .default('active'),
    /** The agent that holds the lease; null: the last one ended in order. */
    incarnation: uuid('incarnation'),
    leaseUntil: instant('lease_until').notNull(),
    /** Whether it serves: changes wait for it. */
    converged: boolean('converged').notNull().default(false),
    report: json('report').$type<HostReport>().notNull(),
    joinedAt: instant('joined_at').notNull(),
    startedAt: instant('started_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.regionId, t.name] }),
    check('hosts_state', sql`${t.state} in ('active', 'draining', 'drained')`),
  ],
);

/** What every host of a region serves. The revision is unique in the region and grows in the order of the commits. */
export const publishedStates = pgTable(
  'published_states',
  {
    regionId: integer('region_id').notNull(),
    kind: text('kind').notNull(),
    id: text('id').notNull(),
    revision: bigint('revision', { mode: 'number' }).notNull(),
    /** JSON, encrypted: it contains private keys. Null: removed. */
    state: bytes('state'),
  },
  (t) => [
    primaryKey({ columns: [t.regionId, t.kind, t.id] }),
    index('published_states_revision').on(t.regionId, t.revision),
  ],
);

/** The last revision that a host has applied, or failed to apply. */
export const hostObservations = pgTable(
  'host_observations',
  {
    regionId: integer('region_id').notNull(),
    host: text('host').notNull(),
    kind: text('kind').notNull(),
    id: text('id').notNull(),
    revision: bigint('revision', { mode: 'number' }).notNull(),
    /** Null: applied. */
    error: json('error').$type<ObservedError>(),
  },
  (t) => [
    primaryKey({ columns: [t.regionId, t.host, t.kind, t.id] }),
    foreignKey({ columns: [t.regionId, t.host], foreignColumns: [hosts.regionId, hosts.name] }).onDelete('cascade'),
  ],
);

/** A DriverError of a host. */
export interface ObservedError {
  message: string;
  customerMessage: string;
  retryable: boolean;
  shortage: boolean;
}

/** The last readings of the parts of a host. */
export const hostReadings = pgTable(
  'host_readings',
  {
    regionId: integer('region_id').notNull(),
    host: text('host').notNull(),
    kind: text('kind').notNull(),
    readAt: instant('read_at').notNull(),
    /** JSON, compressed with gzip, in base64: not a secret, so not `bytea`. */
    readings: text('readings').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.regionId, t.host, t.kind] }),
    foreignKey({ columns: [t.regionId, t.host], foreignColumns: [hosts.regionId, hosts.name] }).onDelete('cascade'),
  ],
);
