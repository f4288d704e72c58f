import type { ReactNode } from 'react';
import { StatusBadge } from '../ui/status.tsx';
import type { LbPool, Listener, L7Policy, Tree } from './data.ts';
import { actionText, policyTitle, ruleText } from './l7-policies/policy.ts';

interface Part {
  readonly operating_status: string;
  readonly provisioning_status: string;
}

/** Listeners, policies, rules, pools, monitors and members as a nested list, each with its statuses. */
export function StatusTree({ tree }: { tree: Tree }) {
  const unused = tree.pools.filter((pool) => pool.listeners.length === 0);
  return (
    <ul className="status-tree card-body">
      {tree.listeners.map((listener) => (
        <ListenerNode key={listener.id} listener={listener} tree={tree} />
      ))}
      {unused.map((pool) => (
        <PoolNode key={pool.id} pool={pool} kind="Pool without a listener" />
      ))}
    </ul>
  );
}

function Node({ kind, name, part, children }: { kind: string; name: ReactNode; part: Part; children?: ReactNode }) {
  // ACTIVE is the rule, so it is left out.
  const isActive = part.provisioning_status === 'ACTIVE';
  return (
    <li>
      <div>
        <span className="muted">{kind}</span> <bdi>{name}</bdi> <StatusBadge status={part.operating_status} />{' '}
        {!isActive && <StatusBadge status={part.provisioning_status} />}
      </div>
      {children && <ul>{children}</ul>}
    </li>
  );
}

function ListenerNode({ listener, tree }: { listener: Listener; tree: Tree }) {
  const policies = tree.policies.filter(({ listener_id }) => listener_id === listener.id);
  const pools = tree.pools.filter((pool) => pool.listeners.some(({ id }) => id === listener.id));
  return (
    <Node kind="Listener" name={`${listener.name} · ${listener.protocol} ${listener.protocol_port}`} part={listener}>
      {policies.map((policy) => (
        <PolicyNode key={policy.id} policy={policy} tree={tree} />
      ))}
      {pools.map((pool) => (
        <PoolNode key={pool.id} pool={pool} kind="Default pool" />
      ))}
    </Node>
  );
}

function PolicyNode({ policy, tree }: { policy: L7Policy; tree: Tree }) {
  const action = actionText(policy, (id) => tree.pools.find((pool) => pool.id === id)?.name ?? id);
  return (
    <Node kind={`L7 policy ${policy.position}`} name={`${policyTitle(policy)}: ${action}`} part={policy}>
      {policy.rules.map((rule) => (
        <Node key={rule.id} kind="Rule" name={ruleText(rule)} part={rule} />
      ))}
    </Node>
  );
}

function PoolNode({ pool, kind }: { pool: LbPool; kind: string }) {
  const monitor = pool.healthmonitor;
  return (
    <Node kind={kind} name={`${pool.name} · ${pool.protocol}`} part={pool}>
      {monitor && <Node kind="Health monitor" name={`${monitor.type} every ${monitor.delay} s`} part={monitor} />}
      {pool.members.map((member) => (
        <Node
          key={member.id}
          kind={member.backup ? 'Backup member' : 'Member'}
          name={`${member.address} port ${member.protocol_port}`}
          part={member}
        />
      ))}
    </Node>
  );
}
