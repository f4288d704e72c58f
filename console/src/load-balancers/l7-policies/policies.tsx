import { useLockReason } from '../../api/session.ts';
import { Icon } from '../../ui/icons.tsx';
import { ActionLink } from '../../ui/page-head.tsx';
import { useScope } from '../../ui/scope.tsx';
import { StatusBadge } from '../../ui/status.tsx';
import { Table } from '../../ui/table.tsx';
import type { L7Policy, LoadBalancer, Tree } from '../data.ts';
import { actionText, policyTitle, ruleText } from './policy.ts';

interface PoliciesProps {
  readonly balancer: LoadBalancer;
  readonly tree: Tree;
  /** Of one listener, by position. */
  readonly policies: readonly L7Policy[];
}

/** The L7 policies of a listener in the order in which they are tried. */
export function Policies({ balancer, tree, policies }: PoliciesProps) {
  if (policies.length === 0)
    return <p className="card-body muted">No L7 policies: all requests go to the default pool.</p>;
  const poolName = (id: string) => tree.pools.find((pool) => pool.id === id)?.name ?? id;
  return (
    <Table
      label="L7 policies"
      rows={policies}
      rowKey={(policy) => policy.id}
      columns={[
        { key: 'position', title: '#', kind: 'number', render: (policy) => policy.position },
        { key: 'name', title: 'L7 policy', kind: 'wrap', render: (policy) => <bdi>{policyTitle(policy)}</bdi> },
        {
          key: 'rules',
          title: 'If all rules match',
          kind: 'wrap',
          render: (policy) => <Rules policy={policy} balancer={balancer} />,
        },
        { key: 'action', title: 'Then', kind: 'wrap', render: (policy) => <bdi>{actionText(policy, poolName)}</bdi> },
        { key: 'status', title: 'Health', render: (policy) => <StatusBadge status={policy.operating_status} /> },
        {
          key: 'actions',
          title: 'Actions',
          kind: 'actions',
          render: (policy) => <PolicyActions policy={policy} balancer={balancer} count={policies.length} />,
        },
      ]}
    />
  );
}

function Rules({ policy, balancer }: { policy: L7Policy; balancer: LoadBalancer }) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  if (policy.rules.length === 0) return <span className="muted">No rules yet: it matches nothing.</span>;
  return (
    <ul>
      {policy.rules.map((rule) => (
        <li key={rule.id} className="row">
          <bdi>{ruleText(rule)}</bdi>
          <ActionLink
            to={scope.path('load-balancers', balancer.id, 'l7-policies', policy.id, 'rules', rule.id, 'edit')}
            className="quiet small"
            disabledReason={reason}
          >
            Edit <span className="visually-hidden">the rule {ruleText(rule)}</span>
          </ActionLink>
          <ActionLink
            to={scope.path('load-balancers', balancer.id, 'l7-policies', policy.id, 'rules', rule.id, 'remove')}
            className="quiet small danger"
            disabledReason={reason}
          >
            Remove <span className="visually-hidden">the rule {ruleText(rule)}</span>
          </ActionLink>
        </li>
      ))}
    </ul>
  );
}

interface PolicyActionsProps {
  readonly policy: L7Policy;
  readonly balancer: LoadBalancer;
  /** Number of policies of the listener. */
  readonly count: number;
}

function PolicyActions({ policy, balancer, count }: PolicyActionsProps) {
  const scope = useScope();
  const reason = useLockReason(balancer, 'load balancer');
  const to = (...segments: string[]) =>
    scope.path('load-balancers', balancer.id, 'l7-policies', policy.id, ...segments);
  const label = <span className="visually-hidden">{policyTitle(policy)}</span>;
  return (
    <span className="row nowrap">
      <ActionLink
        to={to('up')}
        className="quiet small icon"
        disabledReason={policy.position === 1 ? 'It is the first one' : reason}
      >
        <Icon name="up" /> <span className="visually-hidden">Move {policyTitle(policy)} up</span>
      </ActionLink>
      <ActionLink
        to={to('down')}
        className="quiet small icon"
        disabledReason={policy.position === count ? 'It is the last one' : reason}
      >
        <Icon name="down" /> <span className="visually-hidden">Move {policyTitle(policy)} down</span>
      </ActionLink>
      <ActionLink to={to('rules', 'new')} className="small" disabledReason={reason}>
        Add rule <span className="visually-hidden">to</span> {label}
      </ActionLink>
      <ActionLink to={to('edit')} className="small" disabledReason={reason}>
        Edit {label}
      </ActionLink>
      <ActionLink to={to('delete')} className="small danger" disabledReason={reason}>
        Delete {label}
      </ActionLink>
    </span>
  );
}
