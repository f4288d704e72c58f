/** Where the host of a region, and its clients, find us: seen from the address of an API server. */
export const registryPaths = {
  token: '/cloudyard/v1/registry_token',
  events: '/cloudyard/v1/registry_events',
};
