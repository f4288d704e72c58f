import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { PartDialog } from '../ui/deleted-elsewhere.tsx';
import { ActionDialog } from '../ui/form/action-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { type AccessRule, accessRulesQuery, CurrentShare, type FileShare, KIND, SHARE, shareParams } from './data.ts';

export function RemoveAccessRule() {
  return <CurrentShare>{(share) => <CurrentRule share={share} />}</CurrentShare>;
}

function CurrentRule({ share }: { share: FileShare }) {
  const { rule: id } = useParams({ strict: false }) as { rule: string };
  const { data } = useQuery(accessRulesQuery(useScope(), share.id));
  if (!data) return null;
  return (
    <PartDialog part={data.results.find((rule) => rule.id === id)} what="access rule">
      {(rule) => <RemoveDialog share={share} rule={rule} />}
    </PartDialog>
  );
}

function RemoveDialog({ share, rule }: { share: FileShare; rule: AccessRule }) {
  const scope = useScope();
  return (
    <ActionDialog
      title={`Remove the access of ${rule.access_to}`}
      submitLabel="Remove"
      isDangerous
      calls={[
        {
          operationId: 'deleteFileShareAccessRule',
          method: 'DELETE',
          path: `${SHARE}/access_rule/{access_rule_id}`,
          params: { ...shareParams(scope, share.id), access_rule_id: rule.id },
        },
      ]}
      texts={{ done: `Removed the access of ${rule.access_to}` }}
      queryKind={KIND}
      to={scope.path('file-shares', share.id)}
      search={{ tab: 'access' }}
    >
      <p>
        <code>{rule.access_to}</code> can no longer mount <bdi>{share.name}</bdi>. Programs that use the share from
        there fail.
      </p>
    </ActionDialog>
  );
}
