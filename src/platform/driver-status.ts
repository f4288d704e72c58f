/** The status of a driver in the start table, in `GET /healthz/drivers` and in `doctor`. */
export interface DriverStatus {
  driver: string;
  /** The kind of driver: `file shares`, `load balancers`; set where the drivers are started. */
  kind?: string;
  real: boolean;
  healthy: boolean;
  /** One sentence for the operator: what it does on this host, or why it is simulated. */
  detail: string;
  /** The command that makes it real, or that fixes it; absent when neither is needed. */
  remedy?: string;
  /** The port that clients connect to; absent: none, or each resource has its own. */
  port?: number;
  /** The space that it stores resources in; absent: the filesystem of the data directory. */
  space?: DiskSpace;
}

/** An error as the detail of a status: its first line, and the last two of the log that follows, which say why. */
export function detailOf({ message }: Error): string {
  const [first = '', ...log] = message.split('\n').filter((line) => line.trim() !== '');
  return log.length === 0 ? first : `${first} ${log.slice(-2).join(' | ')}`;
}

export interface DiskSpace {
  freeBytes: number;
  totalBytes: number;
  /** With less free space, creates are refused. */
  reserveBytes: number;
}
