import { useQuery } from '@tanstack/react-query';
import { Field } from '../ui/form/field.tsx';
import type { Form } from '../ui/form/use-form.ts';
import { PricePreview } from '../ui/price.tsx';
import { useScope } from '../ui/scope.tsx';
import { flavorsQuery } from './data.ts';
import { flavorSize } from './values.ts';

/** The flavor and its price. */
export function FlavorField({ form }: { form: Form }) {
  const scope = useScope();
  const flavors = useQuery(flavorsQuery(scope)).data?.results ?? [];
  const chosen = (form.get('flavor') as string | undefined) ?? flavors[0]?.flavor_name;
  // The first flavor is shown as chosen, but is not a change of the form.
  const shown: Form = { ...form, get: (path) => (path === 'flavor' ? chosen : form.get(path)) };
  return (
    <>
      <Field
        form={shown}
        path="flavor"
        label="Flavor"
        help="Flavors differ in price only."
        choices={flavors.map((flavor) => ({
          value: flavor.flavor_name,
          label: `${flavor.flavor_name} (${flavorSize(flavor)})`,
        }))}
      />
      <PricePreview kind="loadbalancers" body={chosen ? { flavor: chosen } : null} />
    </>
  );
}
