import schema from 'schema:UpdateLoadBalancer';
import { editedTags, tagsForEdit } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentBalancer } from './current.tsx';
import { balancerParams, type LoadBalancer } from './data.ts';
import { useBalancerForm } from './use-balancer-form.ts';
import { changedFields } from './values.ts';

export function EditLoadBalancer() {
  return <CurrentBalancer>{({ balancer }) => <EditDialog balancer={balancer} />}</CurrentBalancer>;
}

function EditDialog({ balancer }: { balancer: LoadBalancer }) {
  const start = useInitial(balancer);
  const own = { name: start.name, admin_state_up: start.admin_state_up };
  const form = useBalancerForm(balancer.id, {
    call: {
      operationId: 'updateLoadBalancer',
      method: 'PATCH',
      path: '/cloud/v2/loadbalancers/{project_id}/{region_id}/{load_balancer_id}',
      params: balancerParams(useScope(), balancer.id),
    },
    schema,
    initial: { ...own, tags: tagsForEdit(start.tags_v2) },
    isEdit: true,
    toBody: ({ tags: typed, ...rest }) => {
      const tags = editedTags(start.tags_v2, typed);
      return { ...changedFields(schema, own, rest), ...(tags === undefined ? {} : { tags }) };
    },
    sent: () => ({
      busy: `Updating load balancer ${balancer.name}`,
      done: `Updated load balancer ${balancer.name}`,
    }),
  });
  return (
    <FormDialog title={`Edit ${balancer.name}`} form={form} submitLabel="Save">
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="admin_state_up" label="Accept connections" help="" />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
