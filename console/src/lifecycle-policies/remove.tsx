import { useParams } from '@tanstack/react-router';
import type { Call } from '../ui/by-code.tsx';
import { PartDialog } from '../ui/deleted-elsewhere.tsx';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentPolicy, KIND, POLICY, type Policy, policyParams } from './data.ts';

export function RemoveSchedule() {
  const { schedule: id } = useParams({ strict: false }) as { schedule: string };
  return (
    <CurrentPolicy>
      {(policy) => (
        <PartDialog part={numberOf(policy, id)} what="schedule">
          {(number) => (
            <RemoveDialog
              policy={policy}
              what={`schedule ${number}`}
              call={{
                operationId: 'removeLifecyclePolicySchedules',
                method: 'POST',
                path: `${POLICY}/remove_schedules`,
                body: { schedule_ids: [id] },
              }}
            />
          )}
        </PartDialog>
      )}
    </CurrentPolicy>
  );
}

/** Of a schedule in the list of its policy, from 1. */
function numberOf(policy: Policy, id: string): number | undefined {
  return policy.schedules.findIndex((each) => each.id === id) + 1 || undefined;
}

export function RemoveVolume() {
  const { volume: id } = useParams({ strict: false }) as { volume: string };
  return (
    <CurrentPolicy>
      {(policy) => (
        <PartDialog part={policy.volumes?.find((each) => each.volume_id === id)} what="volume">
          {(volume) => (
            <RemoveDialog
              policy={policy}
              what={`volume ${volume.volume_name}`}
              tab="volumes"
              call={{
                operationId: 'removeLifecyclePolicyVolumes',
                method: 'PUT',
                path: `${POLICY}/remove_volumes_from_policy`,
                body: { volume_ids: [id] },
              }}
            />
          )}
        </PartDialog>
      )}
    </CurrentPolicy>
  );
}

interface RemoveDialogProps {
  readonly policy: Policy;
  readonly what: string;
  readonly call: Omit<Call, 'params'>;
  /** Tab of the policy that opens afterwards. */
  readonly tab?: string;
}

/** Needs no typed name, because snapshots are kept. */
function RemoveDialog({ policy, what, call, tab = '' }: RemoveDialogProps) {
  const scope = useScope();
  return (
    <ActionDialog
      title={`Remove ${what} from ${policy.name}`}
      submitLabel="Remove"
      isDangerous
      calls={[{ ...call, params: policyParams(scope, policy.id) }]}
      texts={{ done: `Removed ${what} from ${policy.name}; its snapshots are kept` }}
      queryKind={KIND}
      to={scope.path('lifecycle-policies', policy.id)}
      search={{ tab }}
    >
      <p>Its snapshots are kept, and no longer expire.</p>
    </ActionDialog>
  );
}
