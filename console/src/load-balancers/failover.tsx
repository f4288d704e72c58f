import { useLockReason } from '../api/session.ts';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentBalancer } from './current.tsx';
import { BALANCER, balancerParams, KIND, type LoadBalancer } from './data.ts';

/** Retries a change that failed: the operation compares the hosts with the requested configuration. */
export function FailoverLoadBalancer() {
  return <CurrentBalancer>{({ balancer }) => <FailoverDialog balancer={balancer} />}</CurrentBalancer>;
}

function FailoverDialog({ balancer }: { balancer: LoadBalancer }) {
  const scope = useScope();
  return (
    <ActionDialog
      title={`Repair ${balancer.name}`}
      submitLabel="Repair"
      calls={[
        {
          operationId: 'failoverLoadBalancer',
          method: 'POST',
          path: `${BALANCER}/failover`,
          params: balancerParams(scope, balancer.id),
          body: {},
        },
      ]}
      texts={{ busy: `Repairing load balancer ${balancer.name}`, done: `Repaired load balancer ${balancer.name}` }}
      queryKind={KIND}
      to={scope.path('load-balancers', balancer.id)}
      disabledReason={useLockReason(balancer, 'load balancer')}
    >
      <p>
        The hosts are compared with the configuration of the load balancer, and differences are removed. This repeats a
        change that failed. Connections are kept.
      </p>
    </ActionDialog>
  );
}
