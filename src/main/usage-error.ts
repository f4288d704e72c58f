/** A mistake of whoever typed the command. */
export class UsageError extends Error {}
