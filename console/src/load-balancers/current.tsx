import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { PartDialog } from '../ui/deleted-elsewhere.tsx';
import { useScope } from '../ui/scope.tsx';
import {
  type L7Policy,
  type L7Rule,
  type LbPool,
  type Listener,
  type LoadBalancer,
  loadBalancerQuery,
  type Tree,
  treeQuery,
} from './data.ts';

export interface Current {
  readonly balancer: LoadBalancer;
  readonly tree: Tree;
}

/** Renders a dialog once the load balancer of the URL is loaded; the page below shows the loading and the failure. */
export function CurrentBalancer({ children }: { children: (current: Current) => ReactNode }) {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  const balancer = useQuery(loadBalancerQuery(scope, id)).data;
  const tree = useQuery(treeQuery(scope, id)).data;
  return balancer && tree ? children({ balancer, tree }) : null;
}

interface Parts {
  readonly listeners: Listener;
  readonly pools: LbPool;
  readonly policies: L7Policy;
}

const WHAT = { listeners: 'listener', pools: 'pool', policies: 'L7 policy' } as const;

interface CurrentPartProps<K extends keyof Parts> {
  readonly kind: K;
  readonly children: (part: Parts[K], current: Current) => ReactNode;
}

/** Renders a dialog of the listener, pool or policy of the URL. */
export function CurrentPart<K extends keyof Parts>({ kind, children }: CurrentPartProps<K>) {
  const { part: id } = useParams({ strict: false }) as { part: string };
  return (
    <CurrentBalancer>
      {(current) => (
        <PartDialog part={(current.tree[kind] as readonly Parts[K][]).find((part) => part.id === id)} what={WHAT[kind]}>
          {(part) => children(part, current)}
        </PartDialog>
      )}
    </CurrentBalancer>
  );
}

interface CurrentRuleProps {
  readonly policy: L7Policy;
  readonly children: (rule: L7Rule) => ReactNode;
}

/** The same for the rule of the URL within its policy. */
export function CurrentRule({ policy, children }: CurrentRuleProps) {
  const { rule: id } = useParams({ strict: false }) as { rule: string };
  return (
    <PartDialog part={policy.rules.find((each) => each.id === id)} what="rule">
      {children}
    </PartDialog>
  );
}
