/** The result of a check of `doctor`. */
export interface Finding {
  name: string;
  ok: boolean;
  detail: string;
  /** A command to paste; only of a failed check. */
  remedy?: string;
}
