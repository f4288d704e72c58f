/**
 * Where Cloudyard differs from the Gcore Cloud API on purpose, for docs/compatibility.md.
 *
 * Invariant: each difference has a test of this repository that proves it (test/compatibility.test.ts).
 */

interface Difference {
  /** What a client sees here, and what the official API does. Markdown. */
  here: string;
  official: string;
  reason: string;
  /** A test file, and the name of the test or of its case. */
  test: [file: string, name: string];
}

const resources = 'src/resources';

export const differences: Difference[] = [
  {
    here: 'A project that has resources cannot be deleted: 409 `InUse` names them',
    official: 'deletes the resources with the project',
    reason: 'a mistaken deletion would remove data of several resources at once',
    test: [`${resources}/projects/projects.test.ts`, 'is refused while resources use the project, and names them'],
  },
  {
    here: 'Unknown query parameters and unknown fields are 400 by name',
    official: 'documents no refusal of most of them',
    reason: 'a misspelt filter returns everything, and scripts delete what a list returns',
    test: ['test/requests.test.ts', 'reject all unknown query parameters by name'],
  },
  {
    here: 'A body may be omitted if all its fields are optional',
    official: 'documents the body as required',
    reason: 'some clients send no body if there is nothing to send',
    test: ['test/requests.test.ts', 'may omit a body whose fields are all optional'],
  },
  {
    here: '`threshold` of quota notifications is 1 to 100, and 80 if it is omitted',
    official: '60 to 100, and required',
    reason: 'operators of small regions want early warnings',
    test: [`${resources}/thresholds/thresholds.test.ts`, 'defaults to 80 with no message sent'],
  },
  {
    here: 'Names of pull secrets have 1 to 250 letters, digits, `.`, `_`, `-`',
    official: '2 to 26 lowercase letters, digits and `-`',
    reason: 'the documented length is 250, and registries have names with dots',
    test: [`${resources}/pull-secrets/pull-secrets.test.ts`, 'is refused outside the limits of every field'],
  },
  {
    here: '`registry` of a pull secret has no user or password in front of the host',
    official: 'takes any text',
    reason: 'responses show the field, and passwords are never shown',
    test: [`${resources}/pull-secrets/pull-secrets.test.ts`, 'in registry, login or password is refused'],
  },
  {
    here: '`login`, `password` and `registry` of a pull secret have no control characters',
    official: 'documents their lengths only',
    reason: 'they go into the headers of requests',
    test: [`${resources}/pull-secrets/pull-secrets.test.ts`, 'in registry, login or password is refused'],
  },
  {
    here: 'Load balancers have addresses of the region, IPv6 ones if it has an IPv6 range; `floating_ip` and `vip_port_id` are refused',
    official: 'supports floating IPs and ports',
    reason: 'load balancers use addresses of the host, and networks are records that route no packets',
    test: [`${resources}/load-balancers/load-balancers.test.ts`, 'an existing floating IP'],
  },
  {
    here: 'A load balancer or file share needs a network with a subnet in its project and region, also if the request names none; only the first project of a client gets one',
    official: 'uses the public network if a load balancer names none, and vast shares name none',
    reason: 'the region assigns the addresses, and responses show the network and subnet of a project',
    test: [`${resources}/load-balancers/load-balancers.test.ts`, 'a project without a network'],
  },
  {
    here: 'A pool is the default pool of one listener at most; L7 policies of several listeners may use it',
    official: 'documents no such limit',
    reason: 'a listener that is deleted with its default pool takes nothing from another one',
    test: [`${resources}/load-balancers/listeners/listeners.test.ts`, 'accepts a pool that no other listener uses'],
  },
  {
    here: 'Members of pools may be in the `member_networks` of the region only',
    official: 'documents no such limit',
    reason: 'the proxies run on the host of the operator, and could reach its own services',
    test: ['test/security/member-networks.test.ts', 'the error names the address, its problem and the fix'],
  },
  {
    here: 'Cookies keep clients on a member (`session_persistence`) in HTTP and HTTPS pools only, behind listeners that read HTTP',
    official: 'documents no such limit',
    reason: 'the proxy finds no cookies in other connections',
    test: [`${resources}/load-balancers/pools/bad-input.test.ts`, 'APP_COOKIE on a ${protocol} pool'],
  },
  {
    here: 'Passwords in `user_list` are `$1$`, `$5$` and `$6$` hashes with at most 5,000 rounds, or bcrypt hashes of cost 4 to 6',
    official: 'documents a length only',
    reason: 'the proxy checks them in the threads that carry the traffic of all clients',
    test: [`${resources}/load-balancers/listeners/bad-input.test.ts`, '$6$rounds=5001$salt'],
  },
  {
    here: 'Certificates that are expired, or do not fit their private key or their chain, are refused',
    official: 'documents no such checks',
    reason: 'a load balancer could not serve them',
    test: [`${resources}/secrets/secrets.test.ts`, 'reports all invalid parts in one response'],
  },
  {
    here: 'Networks, subnets and routers only exist as records: packets are not routed',
    official: 'creates virtual networks',
    reason: 'resources are reached at addresses of the host',
    test: [`${resources}/networks/networks.test.ts`, 'accepts type vlan, create_router, and tags'],
  },
  {
    here: 'A subnet with `gateway_ip: null` may omit `connect_to_network_router: false`',
    official: 'requires it',
    reason: 'packets are not routed, so the field is ignored',
    test: [`${resources}/subnets/subnets.test.ts`, 'without a gateway accepts a connection to a router'],
  },
  {
    here: 'File shares of the type `vast` need a region that offers them',
    official: 'offers both types in some regions',
    reason: 'the configuration of the region decides which storage there is',
    test: [`${resources}/file-shares/file-shares.test.ts`, 'refuses null, unknown fields and settings of vast'],
  },
  {
    here: 'There are no file shares of the type `ddn` (Lustre), and vast shares have no trash (`trash_access`)',
    official: 'offers them in some regions',
    reason: 'shares are served over NFS by one program',
    test: [`${resources}/file-shares/vast.test.ts`, 'a vast share has no trash: trash_access is false or absent'],
  },
  {
    here: 'Access rules of file shares have no IPv6 networks from /100 to /119',
    official: 'documents no such limit',
    reason: 'the configuration of the NFS server has no prefixes of three digits',
    test: [
      `${resources}/file-shares/access-rules.test.ts`,
      'an IPv6 network from /100 to /119 is refused, with the prefixes that are accepted',
    ],
  },
  {
    here: 'Names of registry users have at least one character',
    official: 'accepts an empty name',
    reason: 'container clients cannot log in with an empty name',
    test: [`${resources}/registries/registries.test.ts`, "[{ name: '', duration: 1 }, 'name']"],
  },
  {
    here: 'An update of a registry user that omits `read_only` keeps it',
    official: 'documents `false` as its default',
    reason: 'an omitted field must not grant the right to push',
    test: [`${resources}/registries/registries.test.ts`, 'expires after its duration, counted from the last change'],
  },
  {
    here: 'The `metadata` operations of load balancers take any key and value of up to 255 characters',
    official: 'documents the patterns of tags for v1',
    reason: 'v2 takes any text, and both change the same tags',
    test: [
      `${resources}/load-balancers/updates.test.ts`,
      'takes any key and value, which an update of the load balancer does not',
    ],
  },
  {
    here: 'Lists of snapshots, registries and their contents return 1,000 results unless `limit` says otherwise',
    official: 'has no documented default',
    reason: 'the cost of one request is bounded',
    test: [`${resources}/registries/contents/contents.test.ts`, 'create lists that are read in pages'],
  },
  {
    here: 'The response to a batch of registry users has the fields of the first one, and all of them in `results`',
    official: 'one user or the list, depending on the version',
    reason: 'the Go SDK (0.50) reads one user, the Python SDK (0.59) the list',
    test: [`${resources}/registries/registries.test.ts`, 'is created in a batch atomically'],
  },
  {
    here: 'An update of a health monitor (`PATCH …/healthmonitor`) takes `type`',
    official: 'has no `type` there',
    reason: 'the other operations change it, too',
    test: [
      `${resources}/load-balancers/members/members.test.ts`,
      'is shown and updated: absent fields are kept, null removes, and an update without changes returns no task',
    ],
  },
  {
    here: 'An update of an L7 policy that omits `redirect_http_code` keeps it',
    official: 'documents 302 as its default',
    reason: 'omitted fields of an update are unchanged',
    test: [`${resources}/load-balancers/l7-policies/l7-policies.test.ts`, 'is created, read, changed and deleted'],
  },
  {
    here: 'A load balancer has at most 200 listeners',
    official: 'documents at most 50 besides the one of the protocol PROMETHEUS',
    reason: 'the proxy serves 200 as well',
    test: ['test/row-limits.test.ts', 'has at most 200 listeners, 200 pools and 10,000 members'],
  },
  {
    here: 'A load balancer that was created without a `flavor` shows the default flavor, so configurations of the Terraform provider (0.x) must name it',
    official: 'documents null for the default flavor',
    reason: 'the flavor decides the price',
    test: [
      `${resources}/load-balancers/load-balancers.test.ts`,
      'returns one task; when it has finished, the load balancer has an address',
    ],
  },
  {
    here: '`updated_at` of a load balancer is the time of the create until its first change',
    official: 'documents null until the first update',
    reason: 'clients of earlier releases expect a time',
    test: [
      `${resources}/load-balancers/load-balancers.test.ts`,
      'returns one task; when it has finished, the load balancer has an address',
    ],
  },
  {
    here: 'A secret that was created without `algorithm` and `bit_length` shows those of its key',
    official: 'documents null',
    reason: 'they describe a certificate',
    test: [
      `${resources}/secrets/secrets.test.ts`,
      'keeps the attributes that the client sends and derives the others from the key',
    ],
  },
  {
    here: 'Quotas have no `baremetal_gpu_count`; quota requests ignore it',
    official: 'returns the sum of four kinds (deprecated)',
    reason: 'GPU servers are not supported',
    test: [`${resources}/quota-requests/quota-requests.test.ts`, 'only a limit that no quota has'],
  },
  {
    here: 'Volumes cannot be attached or detached: 400',
    official: 'attaches volumes to instances',
    reason: 'instances are not supported',
    test: [`${resources}/volumes/volumes.test.ts`, 'is not attached or detached (%s)'],
  },
  {
    here: 'Volumes cannot be created from images: 400',
    official: 'creates them from images, too',
    reason: 'images are not supported',
    test: [`${resources}/volumes/volumes.test.ts`, 'an image'],
  },
  {
    here: 'Types of volumes and flavors of load balancers change the price only, and at once',
    official: 'moves the data or the load balancer',
    reason: 'a region has one storage and one proxy for all',
    test: [`${resources}/volumes/volumes.test.ts`, 'changes its type at once, to one that the region offers'],
  },
  {
    here: 'The type of a volume can change while it has snapshots',
    official: 'requires that it has none',
    reason: 'the change moves no data, so it does not affect snapshots',
    test: [`${resources}/volumes/volumes.test.ts`, 'changes its type while it has snapshots, which are kept'],
  },
  {
    here: '`persistence_timeout` of UDP pools is a minimum: a client keeps its member until the members change',
    official: 'a client may get another member after it',
    reason: 'a hash selects the member, without memory of the clients',
    test: ['src/drivers/nginx/udp.test.ts', 'keeps the clients of a network by the netmask %s on one member'],
  },
  {
    here: 'Tasks can be awaited: `GET /v1/tasks/{task_id}?wait=30`',
    official: 'is polled',
    reason: 'a response at the end of the task takes one request',
    test: [`${resources}/tasks/tasks.test.ts`, 'responds to all waiting requests when the task ends'],
  },
];
