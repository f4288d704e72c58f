/**
 * What each setting of Cloudyard itself means, for `cloudyard help settings` and docs/settings.md, which is generated. The kinds of
 * drivers describe their own (drivers/kinds.ts).
 */
import type { SettingDescription } from './setting-reader.ts';

/** Markdown, with links relative to docs/. In the order of the help and of docs/settings.md. Without a default: not set. */
export const settingMeanings = {
  CLOUDYARD_HOST: {
    default: '`127.0.0.1`',
    meaning:
      'Address that the API listens on; `0.0.0.0` or `::`: every address of the machine. Read [security](security.md) first.',
  },
  CLOUDYARD_PORT: {
    default: '`8080`',
    meaning:
      'Port of the API; 0: any free port. If it is set and in use, the start waits 5 s and then fails. If it is not set, the first free port from 8080 to 8100 is used.',
  },
  CLOUDYARD_PROCESSES: {
    default: '`1`',
    meaning:
      'Processes of `start` and `serve` that serve the API on its port, 1 to 64, or `auto`: one for each processor. See [Several processes](guides/several-servers.md#several-processes).',
  },
  CLOUDYARD_TLS_CERTIFICATE: {
    meaning:
      'PEM file with the certificate of the API and its issuers. The API then serves HTTPS on its port: see [TLS](guides/tls.md). A relative path starts at the checkout.',
  },
  CLOUDYARD_TLS_KEY: {
    meaning: 'PEM file with the private key, without a passphrase. Set both or neither.',
  },
  CLOUDYARD_HTTP_REDIRECT_PORT: { default: '`0`', meaning: 'Port that redirects HTTP to HTTPS, such as 80; 0: none.' },
  CLOUDYARD_HSTS_SECONDS: {
    default: '`0`',
    meaning: '`max-age` of the header `Strict-Transport-Security`, such as 31536000; 0: the header is not sent.',
  },
  CLOUDYARD_ACME_DOMAINS: {
    meaning:
      "Domain names (`cloud.example.org,console.example.org`) of a certificate from an ACME server, such as Let's Encrypt: see [TLS](guides/tls.md#with-acme). Not with CLOUDYARD_TLS_CERTIFICATE. Use the same `CLOUDYARD_ACME_…` for all servers.",
  },
  CLOUDYARD_ACME_EMAIL: {
    meaning: 'Contact of the account at the ACME server; required with CLOUDYARD_ACME_DOMAINS.',
  },
  CLOUDYARD_ACME_SERVER: {
    default: "Let's Encrypt",
    meaning: 'URL of the directory of the ACME server. Setting it accepts the terms of that server.',
  },
  CLOUDYARD_ACME_CHALLENGE: {
    default: '`http-01`',
    meaning:
      '`http-01`: the ACME server connects to port 80 of each domain, which must reach CLOUDYARD_HTTP_REDIRECT_PORT. `dns-01`: a program sets DNS records.',
  },
  CLOUDYARD_ACME_DNS_HOOK: {
    meaning:
      'Program for `dns-01`. Cloudyard runs it with `present` or `cleanup`, and the name and the value of a TXT record. A relative path starts at the checkout.',
  },
  CLOUDYARD_ACME_DNS_RESOLVERS: {
    meaning:
      'DNS servers (`10.0.0.1:53`) that must return the record before validation starts. Not set: those of the host.',
  },
  CLOUDYARD_ACME_CA_FILE: {
    meaning:
      'PEM file with the CA certificate of a private ACME server. Not set: those of the system. A relative path starts at the checkout.',
  },
  CLOUDYARD_DATA_DIR: {
    default: '`data`',
    meaning:
      'State of this host: see [Data directory](operating.md#data-directory). A relative path starts at the checkout, not at the working directory. In an [installed package](guides/installation.md) the default is `$XDG_DATA_HOME/cloudyard` (`~/.local/share/cloudyard`), and relative paths start at the working directory.',
  },
  DATABASE_URL: {
    meaning:
      '`postgres://user:password@host:port/database` of PostgreSQL 15 or newer. Not set: the embedded PostgreSQL 18. Percent-encode special characters of the password (a space is `%20`).',
  },
  CLOUDYARD_DATABASE_POOL_SIZE: {
    default: '`8`',
    meaning: "Connections of the API's pool, 2 to 100: see [Database connections](operating.md#database-connections).",
  },
  CLOUDYARD_KEY_FILE: {
    default: 'in the data directory',
    meaning:
      'Keys that encrypt secrets: see [Encryption keys](guides/encryption-keys.md). Not set: `secret.keys` in CLOUDYARD_DATA_DIR. A relative path starts at the checkout.',
  },
  CLOUDYARD_BOOTSTRAP_TOKEN: {
    meaning:
      'An admin token `<id>$<secret>` of the operator that every start installs, for CI. It must not contain spaces; use a random secret.',
  },
  CLOUDYARD_REGIONS_FILE: {
    meaning:
      'The [regions file](operating.md#configuration-files). Not set: `config/regions.yaml` of the checkout. A relative path starts at the working directory.',
  },
  CLOUDYARD_QUOTAS_FILE: {
    meaning:
      'Default limits. Not set: `config/quotas.yaml` of the checkout. A relative path starts at the working directory.',
  },
  CLOUDYARD_TRUSTED_PROXIES: {
    meaning:
      'Addresses and networks (`10.0.0.5,10.1.0.0/24`) of reverse proxies in front of the API. `X-Forwarded-For` is accepted from these only. See [Limits](operating.md#limits).',
  },
  CLOUDYARD_RATE_LIMIT: {
    default: '`0`',
    meaning:
      'The limit of `CLOUDYARD_CLIENT_REQUESTS_PER_SECOND` for a minute: requests a minute of each client, on each server, in a burst or spread; 0: no limit. Set only one of the two.',
  },
  CLOUDYARD_CLIENT_REQUESTS_PER_SECOND: {
    default: '`0`',
    meaning:
      'Requests a second of each client, on each server; 0: no limit. `CLOUDYARD_RATE_LIMIT` is the same limit for a minute; set only one of the two. See [Fair use](guides/fair-use.md), as for all limits of clients.',
  },
  CLOUDYARD_CLIENT_OPEN_REQUESTS: {
    default: '`500`',
    meaning: 'Requests of each client that run or wait, on each server.',
  },
  CLOUDYARD_CLIENT_OPEN_WAITS: {
    default: '`500`',
    meaning: 'Requests of each client that wait for a task, on each server.',
  },
  CLOUDYARD_CLIENT_EVENT_STREAMS: { default: '`1000`', meaning: 'Open event streams of each client, on each server.' },
  CLOUDYARD_CLIENT_TASKS: { default: '`10000`', meaning: 'Active tasks of each client.' },
  CLOUDYARD_CLIENT_RECONCILE_SLOTS: {
    default: '`0`',
    meaning: 'Jobs of one client that a worker runs at a time; 0: three quarters of `CLOUDYARD_WORKER_CONCURRENCY`.',
  },
  CLOUDYARD_MAX_BACKLOG: {
    default: '`100000`',
    meaning:
      'Maximum number of jobs in the queue; beyond it, creates get [503](errors.md#unavailable). Each server counts jobs about once a second. Snapshots of lifecycle policies are never refused.',
  },
  CLOUDYARD_AUDIT_DAYS: {
    default: '`365`',
    meaning: 'Days that an entry of the [audit log](guides/audit-log.md) is retained; 0: no limit.',
  },
  CLOUDYARD_TASK_DAYS: {
    default: '`90`',
    meaning: 'Days that an ended task is retained; 0: no limit. Active tasks are never deleted.',
  },
  CLOUDYARD_NOTIFICATION_DAYS: {
    default: '`90`',
    meaning:
      'Days that a [notification](guides/notifications.md) and its deliveries are retained; 0: no limit. Pending deliveries are never deleted.',
  },
  CLOUDYARD_VERIFY_NETWORKS: {
    meaning:
      'Addresses and networks (`10.0.0.0/8,192.168.1.5`) of registries that [pull secrets may be verified against](guides/pull-secrets.md), in addition to the public internet.',
  },
  CLOUDYARD_LOG_LEVEL: {
    default: '`info`',
    meaning:
      '`trace`, `debug`, `info`, `warn`, `error` or `silent`. With `debug`, a failed command also prints the stack.',
  },
  CLOUDYARD_LOG_FORMAT: {
    default: 'by terminal',
    meaning: '`json` or `pretty`. Not set: `pretty` if standard output is a terminal, otherwise `json`.',
  },
  CLOUDYARD_PUBLIC_URL: {
    meaning:
      'URL at which clients and registry hosts reach the API, such as `https://cloud.example.org`, without a user, a query or a fragment. Not set: the address that an API server listens on, which all of them must be able to reach. See [Registries](guides/registries.md).',
  },
  CLOUDYARD_OIDC_ISSUER: {
    meaning:
      'URL of an OpenID Connect provider, with which people sign in: see [Sign-in](guides/sign-in.md). Requires CLOUDYARD_PUBLIC_URL. Use the same `CLOUDYARD_OIDC_…` for all servers.',
  },
  CLOUDYARD_OIDC_CLIENT_ID: { meaning: 'Client ID that the provider issued.' },
  CLOUDYARD_OIDC_CLIENT_SECRET: { meaning: 'Client secret that the provider issued.' },
  CLOUDYARD_OIDC_GROUPS_FILE: {
    meaning: 'YAML file that maps groups to clients, roles and projects. A relative path starts at the checkout.',
  },
  CLOUDYARD_OIDC_GROUPS_CLAIM: {
    default: '`groups`',
    meaning: 'Claim with the groups of a person, in the ID token or the userinfo response.',
  },
  CLOUDYARD_OIDC_SCOPES: {
    default: '`openid profile email`',
    meaning: 'Scopes that are requested, separated by spaces.',
  },
  CLOUDYARD_OIDC_SECONDS: { default: '`28800`', meaning: 'How long a sign-in lasts, 60 to 604800 seconds.' },
  CLOUDYARD_OTLP_ENDPOINT: {
    meaning:
      'Base URL of an OpenTelemetry collector (OTLP over HTTP), such as `http://127.0.0.1:4318`, to which [traces](guides/monitoring.md#traces) are sent. Not set: no traces.',
  },
  CLOUDYARD_OTLP_HEADERS: {
    meaning: 'Headers of these requests, such as `authorization=Bearer x,x-scope=a`.',
  },
  CLOUDYARD_TRACE_PERCENT: {
    default: '`100`',
    meaning: 'Percentage of traces that are recorded, 1 to 100. Use the same value for all servers and workers.',
  },
  CLOUDYARD_NOTIFICATION_WINDOW_SECONDS: {
    default: '`5`',
    meaning: 'Crossings of thresholds within this time of the first one are sent as one message.',
  },
  CLOUDYARD_WORKER_CONCURRENCY: { default: '`8`', meaning: 'Jobs that a worker runs at a time, 1 to 100.' },
  CLOUDYARD_WORKER_PORT: {
    default: '`0`',
    meaning:
      'Port of `/healthz` and `/metrics` of a process that is only a worker or an agent, on CLOUDYARD_HOST; 0: none. Processes on one host need different ports.',
  },
  CLOUDYARD_SWEEP_SECONDS: {
    default: '`300`',
    meaning: 'Interval of [sweeps](architecture.md#sweeps), which compare all rows with the host.',
  },
  CLOUDYARD_SCHEDULE_LATE_SECONDS: {
    default: '`300`',
    meaning:
      'A run of a lifecycle policy that is later than this is [reported](guides/lifecycle-policies.md) to its client.',
  },
  CLOUDYARD_DISK_RESERVE: {
    default: '`5`',
    meaning:
      'Percentage of the filesystem of CLOUDYARD_DATA_DIR to keep free, 0 to 90; 0: no limit. With less free space, creates and extensions of shares and volumes, snapshots, and pushes of images get [507](errors.md#insufficientstorage). Each worker applies its own value to its host.',
  },
  CLOUDYARD_HOST_NAME: {
    default: 'the host name',
    meaning: 'The name of this host in a region of several hosts; unique in the region.',
  },
  CLOUDYARD_HOST_ADDRESS: {
    meaning:
      'The address at which the other hosts of the region reach this one; unique in the region. Required by `cloudyard host`.',
  },
  CLOUDYARD_HOST_INTERFACE: {
    default: 'by the address',
    meaning:
      'Network interface for the [addresses that move between hosts](several-hosts-concepts.md#addresses). Not set: the one that has CLOUDYARD_HOST_ADDRESS.',
  },
  CLOUDYARD_KEEP_DATA_PLANES: {
    default: '`0`',
    meaning:
      '1: on SIGTERM and SIGHUP, `start` keeps HAProxy, nginx, Ganesha and distribution running, and the next start adopts them, as with `worker`: see [Upgrade](guides/upgrade.md).',
  },
  CLOUDYARD_CONSOLE: { default: '`1`', meaning: '0: this server does not serve the [console](console.md).' },
  CLOUDYARD_SESSION_IDLE_TIMEOUT: {
    default: '`28800`',
    meaning:
      'Idle time after which a session of the console ends, 1 to 604800 seconds. Use the same value for all servers and workers.',
  },
  CLOUDYARD_DEV: {
    default: '`0`',
    meaning:
      '1: admins of the operator may move the clock and inject faults: see [Development mode](guides/development-mode.md). Use the same value for all servers and workers.',
  },
  CLOUDYARD_BACKUP_DIR: {
    default: 'in the data directory',
    meaning: 'Where [backups](guides/backup-and-restore.md) are stored. Not set: `backups` in CLOUDYARD_DATA_DIR.',
  },
  CLOUDYARD_BACKUP_PASSPHRASE_FILE: {
    meaning:
      'File whose first line is the passphrase that encrypts the key file in backups. Conflicts with `CLOUDYARD_BACKUP_AGE_RECIPIENT`.',
  },
  CLOUDYARD_BACKUP_AGE_RECIPIENT: {
    meaning:
      'age recipient (public key) that encrypts the key file in backups. Conflicts with `CLOUDYARD_BACKUP_PASSPHRASE_FILE`.',
  },
  CLOUDYARD_BACKUP_SCHEDULE: {
    meaning:
      'Schedule of [backups](guides/backup-and-restore.md#schedule): minute, hour, day, month, weekday and optionally a time zone, such as `30 3 * * *` or `0 */6 * * mon-fri Europe/Berlin`. Use the same value for all servers and workers.',
  },
  CLOUDYARD_BACKUP_KEEP: { default: '`7`', meaning: 'Scheduled backups that are retained, 1 to 10000.' },
  CLOUDYARD_BACKUP_WITH_DATA: {
    default: '`0`',
    meaning:
      "1: scheduled backups contain the tenants' data of the host that makes them. Processes without such data make one, of the database, only when it is an hour late.",
  },
  CLOUDYARD_BACKUP_BEFORE_MIGRATION: {
    default: '`1`',
    meaning: '0: do not back up the database before a migration: see [Upgrade](guides/upgrade.md).',
  },
} satisfies Record<string, Pick<SettingDescription, 'meaning'> & Partial<SettingDescription>>;

export type CoreSettingName = keyof typeof settingMeanings;
