/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Client of Carrel: sandboxes and persistent workspaces for AI agents.
 *
 * @packageDocumentation
 */
export type { Bytes } from "./bytes.js";
export { Carrel, type WorkspaceFilter } from "./carrel.js";
export {
  Output,
  Process,
  Result,
  Stream,
  type Command,
  type CommandOptions,
  type Duration,
  type RunOptions,
  type Size,
  type StartOptions,
  type StreamOptions,
} from "./commands.js";
export {
  ApiError,
  ApprovalRequiredError,
  CanceledError,
  CarrelError,
  CommandFailedError,
  CommandNotFoundError,
  ConflictError,
  ConnectionError,
  CorruptError,
  DeniedError,
  DiskFullError,
  InvalidError,
  LimitError,
  NotExecutableError,
  NotFoundError,
  UnauthenticatedError,
  UnavailableError,
  type ProblemCode,
  type ProblemDetails,
} from "./errors.js";
export type { AuditOptions, EventOptions } from "./events.js";
export { Files } from "./files.js";
export type * from "./generated.js";
export type { CallOptions, CarrelOptions, CreateOptions } from "./http.js";
export { Listing, type Page } from "./listing.js";
export {
  Agents,
  Approvals,
  Archives,
  Cases,
  Deployments,
  Packages,
  Environments,
  Execs,
  Exports,
  Snapshots,
  Templates,
  Tokens,
  Tools,
  Trees,
  type ApprovalFilter,
  type TokenOptions,
} from "./nouns.js";
export { Connection, Forward, type PortRequest } from "./ports.js";
export { Session } from "./session.js";
export {
  Workspace,
  type ApplyOptions,
  type DiffOptions,
  type ForkOptions,
  type PackageOptions,
  type RollbackOptions,
  type SnapshotOptions,
  type WorkspaceOptions,
  type WorkspaceUpdate,
} from "./workspace.js";
