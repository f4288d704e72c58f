/** What the start-up table, `GET /healthz/drivers` and `doctor` say of a driver. */
export interface DriverStatus {
  driver: string;
  /** What it makes real: `file shares`, `load balancers`; told by whoever wires the drivers. */
  kind?: string;
  real: boolean;
  healthy: boolean;
  /** One sentence for the operator: what it does here, or why it only pretends. */
  detail: string;
  /** The one line that would make it real (or whole); absent when it already is. */
  remedy?: string;
}
