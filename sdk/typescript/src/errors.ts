/* What can fail: a problem that the daemon reports, by its code; a connection; a command that run() judges. */
import type { AppliedChange, Approval, PolicyStep, Problem } from "./generated.js";
import { decode } from "./shapes.js";

/** The codes of problems. A newer daemon may have others. */
export type ProblemCode = Problem["code"];

/** What a daemon says about a request that failed (RFC 9457). */
export interface ProblemDetails {
  /** The status of the response; 0 where there was none. */
  status: number;
  /** Stable: see {@link ProblemCode}. */
  code: string;
  /** For people. */
  detail: string;
  /** How to correct it. */
  hint?: string | null;
  /** Of the request, as in the logs of the daemon. */
  requestId?: string;
  /** What `carrel exec` would end with: 126, 127 or 130. */
  exitCode?: number;
  /** How a policy judged the command. */
  trail?: PolicyStep[];
  /** Changes that can't be applied, of a conflict. */
  changes?: AppliedChange[];
  /** The approval that is needed. */
  approval?: Approval;
  /** The id of the exec that waits for it. */
  exec?: string;
}

/** Everything that this client throws, besides the reason of an `AbortSignal`. */
export class CarrelError extends Error {
  /** Stable: a {@link ProblemCode}, `connection` or `command_failed`. */
  readonly code: string;

  /** @internal */
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** The daemon refused a request, or could not do it. Its subclasses stand for the codes. */
export class ApiError extends CarrelError {
  /** The status of the response; 0 where there was none. */
  readonly status: number;
  /** What failed, without the hint that the message ends with. */
  readonly detail: string;
  /** How to correct it. */
  readonly hint: string | null;
  /** Of the request, as in the logs of the daemon. */
  readonly requestId: string | undefined;
  /** What `carrel exec` would end with: 126, 127 or 130. */
  readonly exitCode: number | undefined;
  /** How a policy judged the command. */
  readonly trail: PolicyStep[];

  /** @internal */
  constructor(problem: ProblemDetails) {
    super(problem.code, problem.detail + (problem.hint ? ` (${problem.hint})` : ""));
    this.status = problem.status;
    this.detail = problem.detail;
    this.hint = problem.hint ?? null;
    this.requestId = problem.requestId;
    this.exitCode = problem.exitCode;
    this.trail = problem.trail ?? [];
  }
}

/** `invalid`: the request is wrong. */
export class InvalidError extends ApiError {}
/** `not_found`: the object that the request names does not exist. */
export class NotFoundError extends ApiError {}
/** `denied`: a permission or a policy forbids it, or a reviewer did. */
export class DeniedError extends ApiError {}
/** `limit`: a size, a count or a rate exceeds its maximum. */
export class LimitError extends ApiError {}
/** `disk_full`: the disk of the daemon, or the limit of a workspace. */
export class DiskFullError extends ApiError {}
/** `unavailable`: the daemon can't do it now, or can't do it on this host. */
export class UnavailableError extends ApiError {}
/** `corrupt`: stored data is damaged. */
export class CorruptError extends ApiError {}
/** `command_not_found`: the command to run does not exist. */
export class CommandNotFoundError extends ApiError {}
/** `not_executable`: the command to run can't be executed. */
export class NotExecutableError extends ApiError {}
/** `canceled`: a user or another client canceled it. */
export class CanceledError extends ApiError {}
/** `unauthenticated`: the token is wrong or has expired, or none was given. */
export class UnauthenticatedError extends ApiError {}

/** `conflict`: the object exists already, or is busy. */
export class ConflictError extends ApiError {
  /** The changes that can't be applied, of `apply`. */
  readonly changes: AppliedChange[];

  /** @internal */
  constructor(problem: ProblemDetails) {
    super(problem);
    this.changes = problem.changes ?? [];
  }
}

/** `approval_required`: a reviewer must be asked. With `approval: "return"` the command waits in the background. */
export class ApprovalRequiredError extends ApiError {
  /** The question, if the command waits for its answer. */
  readonly approval: Approval | undefined;
  /** The id of the exec that waits. */
  readonly execId: string | undefined;

  /** @internal */
  constructor(problem: ProblemDetails) {
    super(problem);
    this.approval = problem.approval;
    this.execId = problem.exec;
  }
}

/** No daemon was reached, or the connection ended before the response did. */
export class ConnectionError extends CarrelError {
  /** Whether the daemon may have begun the request. */
  readonly sent: boolean;

  /** @internal */
  constructor(message: string, sent: boolean, cause?: unknown) {
    super("connection", message, { cause });
    this.sent = sent;
  }
}

/** `run()`: the command did not end with 0. */
export class CommandFailedError extends CarrelError {
  /** What the command ended with. */
  readonly exitCode: number;
  /** Why it ended: `exited`, `timeout`, `memory_limit` … */
  readonly reason: string;
  /** What it wrote. */
  readonly stdout: string;
  /** What it wrote. */
  readonly stderr: string;

  /** @internal */
  constructor(what: string, result: { exitCode: number; reason: string; stdout: string; stderr: string }) {
    const last = result.stderr.trimEnd().split("\n").pop();
    const how = result.reason === "exited" ? `exit code ${result.exitCode}` : result.reason;
    super("command_failed", `${what}: ${how}${last ? `: ${last}` : ""}`);
    this.exitCode = result.exitCode;
    this.reason = result.reason;
    this.stdout = result.stdout;
    this.stderr = result.stderr;
  }
}

const classes: Record<string, new (problem: ProblemDetails) => ApiError> = {
  invalid: InvalidError,
  not_found: NotFoundError,
  conflict: ConflictError,
  denied: DeniedError,
  limit: LimitError,
  disk_full: DiskFullError,
  unavailable: UnavailableError,
  corrupt: CorruptError,
  command_not_found: CommandNotFoundError,
  not_executable: NotExecutableError,
  canceled: CanceledError,
  unauthenticated: UnauthenticatedError,
  approval_required: ApprovalRequiredError,
};

/* With names as in this client. */
function problemError(problem: ProblemDetails): ApiError {
  return new (classes[problem.code] ?? ApiError)(problem);
}

/** The error of a problem as the daemon writes it. @internal */
export function problemFrom(said: object, status: number): ApiError {
  return problemError({ ...(decode("ApprovalRequired", decode("Problem", said)) as ProblemDetails), status });
}

/** The error of a response's body, which may be anything: a proxy may have written it. @internal */
export function problemOf(status: number, text: string): ApiError {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    said = null;
  }
  if (typeof said === "object" && said !== null && "code" in said) return problemFrom(said, status);
  const code = status === 404 ? "not_found" : status === 401 ? "unauthenticated" : status === 403 ? "denied" : "failed";
  return problemError({ status, code, detail: `HTTP status ${status}: ${text.slice(0, 200)}` });
}
