/** `create_sfs` is `Create file share`. */
const WORDS: Readonly<Record<string, string>> = {
  patch: 'update',
  put: 'update',
  sfs: 'file share',
  loadbalancer: 'load balancer',
  lbmetadata: 'tags of load balancer',
  lblistener: 'listener',
  lbpool: 'pool',
  lbmember: 'pool member',
  lifecyclepolicy: 'lifecycle policy',
  l7policy: 'L7 policy',
  l7rule: 'L7 rule',
};

export function taskTitle(type: string): string {
  const text = type
    .split('_')
    .map((word) => WORDS[word] ?? word)
    .join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}
