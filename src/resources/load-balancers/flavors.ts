/** Pure: the flavors of a region. They differ in price only: the host treats all load balancers alike. */
import type { FieldError } from '../../errors/catalogue.ts';
import type { LoadBalancerFlavor } from '../regions/schema.ts';
import type { LoadBalancer } from './schema.ts';

export function flavorErrors(offered: LoadBalancerFlavor[], name: string): FieldError[] {
  const names = offered.map((flavor) => flavor.name);
  if (names.includes(name)) return [];
  return [{ path: 'flavor', message: `the region offers ${names.join(', ')}` }];
}

/** Null if the region no longer offers the flavor. */
export function flavorToResponse(offered: LoadBalancerFlavor[], name: string): LoadBalancer['flavor'] {
  const flavor = offered.find((each) => each.name === name);
  return flavor ? { flavor_id: name, flavor_name: name, vcpus: flavor.vcpus, ram: flavor.ram } : null;
}
