/** Pure: what of a listener makes no sense. Everything that is wrong is told at once, each with the path where it stands. */
import type { FieldError } from '../../../errors/catalogue.ts';
import type { WantedSecret } from '../pools/references.ts';
import type { ListenerSettings } from './settings.ts';

const httpProtocols = ['HTTP', 'TERMINATED_HTTPS'];

/** `path` is what stands before the listener's own fields. */
export function settingFaults(listener: ListenerSettings, path: string): FieldError[] {
  const faults: FieldError[] = [];
  const note = (field: string, message: string) => faults.push({ path: `${path}${field}`, message });
  const { protocol } = listener;
  if (protocol === 'TERMINATED_HTTPS') {
    if (listener.secretId === null)
      note('secret_id', 'is required: a listener of TERMINATED_HTTPS shows a certificate');
  } else {
    const onlyThere = `is for listeners of TERMINATED_HTTPS, and this is ${protocol}`;
    if (listener.secretId !== null) note('secret_id', onlyThere);
    if (listener.sniSecretIds.length > 0) note('sni_secret_id', onlyThere);
  }
  if (!httpProtocols.includes(protocol)) {
    const onlyThere = `is for listeners of HTTP and TERMINATED_HTTPS, and this is ${protocol}`;
    if (listener.insertXForwarded) note('insert_x_forwarded', onlyThere);
    if (listener.userList.length > 0) note('user_list', onlyThere);
  }
  return [...faults, ...userFaults(listener, `${path}user_list`)];
}

function userFaults({ userList }: ListenerSettings, path: string): FieldError[] {
  const names = userList.map((user) => user.username);
  return userList.flatMap(({ username, encrypted_password }, i) => {
    const first = names.indexOf(username);
    const fault = passwordFault(encrypted_password);
    return [
      ...(first < i ? [{ path: `${path}.${i}.username`, message: `is that of ${path}.${first}, too` }] : []),
      ...(fault ? [{ path: `${path}.${i}.encrypted_password`, message: fault }] : []),
    ];
  });
}

// The methods of crypt(3) that Debian's has and that are no plain text; the alphabet is that of all of them.
const hashes = [
  /^\$1\$[./0-9A-Za-z]{0,8}\$[./0-9A-Za-z]{22}$/,
  /^\$5\$(?:rounds=(?<rounds>[1-9]\d{3,8})\$)?[./0-9A-Za-z]{0,16}\$[./0-9A-Za-z]{43}$/,
  /^\$6\$(?:rounds=(?<rounds>[1-9]\d{3,8})\$)?[./0-9A-Za-z]{0,16}\$[./0-9A-Za-z]{86}$/,
  /^\$2[abxy]\$(?<cost>\d\d)\$[./0-9A-Za-z]{53}$/,
];
// As the driver has them (drivers/haproxy/authentication.ts): the proxy does nothing else while it hashes, for any tenant.
const maxRounds = 5_000;
const costs = { least: 4, most: 6 };

function passwordFault(hash: string): string | null {
  const match = hashes.map((pattern) => pattern.exec(hash)).find((found) => found !== null);
  if (!match) return 'must be a hash of crypt(3): $1$, $5$, $6$ or $2b$, as `mkpasswd` or `htpasswd -nB` make it';
  const { rounds, cost } = match.groups ?? {};
  if (Number(rounds ?? 0) > maxRounds) return `must have at most ${maxRounds} rounds`;
  if (cost !== undefined && (Number(cost) < costs.least || Number(cost) > costs.most)) {
    return `must have a cost of ${costs.least} to ${costs.most}`;
  }
  return null;
}

/** Two of one port and transport cannot stand side by side; UDP has ports of its own. */
export function samePort(a: ListenerSettings, b: ListenerSettings): boolean {
  return a.protocolPort === b.protocolPort && (a.protocol === 'UDP') === (b.protocol === 'UDP');
}

/** The secrets that a listener names and did not name `before`: those are its own already. */
export function secretsWanted(
  listener: ListenerSettings,
  before: ListenerSettings | null,
  path: string,
): WantedSecret[] {
  const own = new Set([before?.secretId, ...(before?.sniSecretIds ?? [])]);
  const named = [
    { id: listener.secretId, path: `${path}secret_id` },
    ...listener.sniSecretIds.map((id, i) => ({ id, path: `${path}sni_secret_id.${i}` })),
  ];
  return named.flatMap(({ id, path }) => (id === null || own.has(id) ? [] : [{ id, kind: 'certificate', path }]));
}
