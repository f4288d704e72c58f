import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useNotClientAdminReason } from '../api/session.ts';
import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useClientId, useScope } from '../ui/scope.tsx';
import { hostOf, WEBHOOK, webhookQuery } from './data.ts';

export function DeleteWebhook() {
  const scope = useScope();
  const clientId = useClientId();
  const { webhook: id } = useParams({ strict: false }) as { webhook: string };
  const { data: webhook } = useQuery(webhookQuery(clientId, id));
  const reason = useNotClientAdminReason();
  if (!webhook || clientId === undefined) return null;
  return (
    <DeleteDialog
      kind="webhook"
      name={hostOf(webhook)}
      queryKind="webhooks"
      listPath={scope.path('webhooks')}
      disabledReason={reason}
      call={{ operationId: 'deleteWebhook', path: WEBHOOK, params: { client_id: clientId, webhook_id: id } }}
    >
      <code>{webhook.url}</code> gets no more notifications, and its secret is deleted.
    </DeleteDialog>
  );
}
