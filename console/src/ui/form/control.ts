/** Attributes of the control of a field: its label, help and errors refer to them. */
export interface ControlProps {
  readonly id: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
  readonly required: boolean;
  readonly disabled: boolean | undefined;
}
