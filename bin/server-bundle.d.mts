export function serverBundle(): Promise<{ script: string; cache: string } | null>;
