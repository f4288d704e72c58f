/** Pure: the boxes and lines of the picture "How a request flows", drawn from the parts of a load balancer. */
import { type Tone, toneOf } from '../ui/status.tsx';
import type { L7Policy, LbPool, Listener, Tree } from './data.ts';
import { actionText, policyTitle } from './l7-policies/policy.ts';

export const BOX = { width: 164, height: 44 } as const;
const GAP = { x: 40, y: 12 } as const;
/** Further members of a pool are one box. */
const SHOWN_MEMBERS = 8;

interface Node {
  readonly key: string;
  readonly title: string;
  readonly detail: string;
  readonly tone: Tone;
  /** Keys of the nodes to the left that lead here. */
  readonly from: readonly string[];
}

interface Box extends Node {
  readonly x: number;
  readonly y: number;
}

interface Line {
  readonly key: string;
  /** An SVG path from the right of one box to the left of the next. */
  readonly path: string;
  readonly tone: Tone;
}

interface Layout {
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
  readonly width: number;
  readonly height: number;
}

export function layoutOf(tree: Tree): Layout {
  const client: Node = { key: 'client', title: 'Clients', detail: '', tone: '', from: [] };
  const steps = tree.policies.length > 0 ? [policyNodes(tree)] : [];
  const columns = [
    [client],
    tree.listeners.map(listenerNode),
    ...steps,
    poolNodes(tree),
    tree.pools.flatMap(memberNodes),
  ];
  const shown = columns.filter((nodes) => nodes.length > 0);
  const height = Math.max(...shown.map(heightOf));
  const boxes = shown.flatMap((nodes, column) =>
    nodes.map((node, row) => ({
      ...node,
      x: column * (BOX.width + GAP.x),
      y: (height - heightOf(nodes)) / 2 + row * (BOX.height + GAP.y),
    })),
  );
  return { boxes, lines: linesOf(boxes), width: shown.length * (BOX.width + GAP.x) - GAP.x, height };
}

function heightOf(nodes: readonly Node[]): number {
  return nodes.length * (BOX.height + GAP.y) - GAP.y;
}

function linesOf(boxes: readonly Box[]): Line[] {
  const byKey = new Map(boxes.map((box) => [box.key, box]));
  return boxes.flatMap((to) =>
    to.from.flatMap((key): Line[] => {
      const from = byKey.get(key);
      if (!from) return [];
      const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
      const [x2, y2] = [to.x, to.y + BOX.height / 2];
      const middle = (x1 + x2) / 2;
      return [
        { key: `${key} ${to.key}`, path: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, tone: to.tone },
      ];
    }),
  );
}

function statusText(status: string): string {
  return status.toLowerCase().replaceAll('_', ' ');
}

function listenerNode({ id, name, protocol, protocol_port, operating_status }: Listener): Node {
  return {
    key: id,
    title: name,
    detail: `${protocol} ${protocol_port} · ${statusText(operating_status)}`,
    tone: toneOf(operating_status),
    from: ['client'],
  };
}

/** The policies of each listener, and what happens to the requests that none of them matches. */
function policyNodes(tree: Tree): Node[] {
  const poolName = (id: string) => tree.pools.find((pool) => pool.id === id)?.name ?? id;
  return tree.listeners.flatMap(({ id }): Node[] => {
    const own = tree.policies.filter(({ listener_id }) => listener_id === id);
    const isLast = own.length > 0;
    return [
      ...own.map((policy) => policyNode(policy, poolName)),
      {
        key: `other ${id}`,
        title: isLast ? 'otherwise' : 'all traffic',
        detail: 'to the default pool',
        tone: '',
        from: [id],
      },
    ];
  });
}

function policyNode(policy: L7Policy, poolName: (id: string) => string): Node {
  return {
    key: policy.id,
    title: `${policy.position}. ${policyTitle(policy)}`,
    detail: policy.rules.length === 0 ? 'has no rules' : actionText(policy, poolName),
    tone: toneOf(policy.operating_status),
    from: [policy.listener_id],
  };
}

function poolNodes(tree: Tree): Node[] {
  return tree.pools.map((pool) => ({
    key: pool.id,
    title: pool.name,
    detail: `${pool.protocol} · ${statusText(pool.operating_status)}`,
    tone: toneOf(pool.operating_status),
    from: [
      ...pool.listeners.map(({ id }) => (tree.policies.length > 0 ? `other ${id}` : id)),
      ...tree.policies.filter(({ redirect_pool_id }) => redirect_pool_id === pool.id).map(({ id }) => id),
    ],
  }));
}

function memberNodes(pool: LbPool): Node[] {
  const nodes = pool.members.slice(0, SHOWN_MEMBERS).map((member) => ({
    key: member.id,
    title: `${member.address} : ${member.protocol_port}`,
    detail: [`weight ${member.weight}`, ...(member.backup ? ['backup'] : []), statusText(member.operating_status)].join(
      ' · ',
    ),
    tone: toneOf(member.operating_status),
    from: [pool.id],
  }));
  const hidden = pool.members.length - nodes.length;
  if (hidden <= 0) return nodes;
  return [...nodes, { key: `more ${pool.id}`, title: `and ${hidden} more`, detail: '', tone: '', from: [pool.id] }];
}
