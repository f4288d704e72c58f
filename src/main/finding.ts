/** The result of a check of `doctor`. */
export interface Finding {
  name: string;
  ok: boolean;
  detail: string;
  /** A command to paste; shown only if the check failed. */
  remedy?: string;
}
