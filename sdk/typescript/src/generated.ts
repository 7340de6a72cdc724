/* Generated from /openapi.json by tools/generate.mjs. Do not edit: npm run generate. */

/** The schema `Health` of the REST API. */
export interface DaemonHealth {
  status: string;
}

/** An OpenAPI document. */
export type OpenApiDocument = Record<string, unknown>;

/** The schema `Environments` of the REST API. */
export interface Environments {
  items: Environment[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Environment` of the REST API. */
export interface Environment {
  name: string;
  packageId: string | null;
  state: "ready" | "corrupt";
  createdAt: string | null;
  lastUsedAt: string | null;
  useCount: number;
  sizeBytes: number;
  kind: "python" | "node";
  pythonVersion: string | null;
  nodeVersion: string | null;
  /** name: version */
  installedPackages: Record<string, string>;
  inUse: boolean;
  problem: string | null;
}

/** The schema `Templates` of the REST API. */
export interface Templates {
  items: Template[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** What it extends is resolved: the values are those that a workspace gets. */
export interface Template {
  version?: string;
  name: string;
  /** shipped, or user */
  origin: string;
  description?: string;
  extends?: string;
  python: TemplatePython;
  nodejs: TemplateNode;
  system: TemplateSystem;
  security: TemplateSecurity;
  limits: Limits;
  network: TemplateNetwork;
  env?: Record<string, string>;
  labels?: Record<string, string>;
  files?: Record<string, string>;
  view?: "workspace" | "root";
  attach?: string[];
  ttlMs?: number;
  idleTimeoutMs?: number;
  settings?: Record<string, unknown>;
  sources?: Record<string, unknown>;
  /** of all that a workspace is made of */
  sha256: string;
  /** keys that have no effect in this version */
  warnings: string[];
  /** as it was added; values above are resolved */
  yaml?: string;
}

/** The schema `TemplatePython` of the REST API. */
export interface TemplatePython {
  version?: string;
  dependencies?: string[];
}

/** The schema `TemplateNode` of the REST API. */
export interface TemplateNode {
  version?: string;
  runtime?: "bun" | "npm";
  dependencies?: Record<string, string>;
}

/** The schema `TemplateSystem` of the REST API. */
export interface TemplateSystem {
  shell?: string;
  editor?: string;
}

/** The schema `TemplateSecurity` of the REST API. */
export interface TemplateSecurity {
  networkEnabled?: boolean;
  filesystemReadonly?: string[];
  filesystemWritable?: string[];
}

/** The limits in force; null: no limit. */
export interface Limits {
  memoryBytes: number | null;
  diskBytes: number | null;
  tmpBytes: number | null;
  pids: number | null;
  fds: number | null;
  cpus: number | null;
  cpuTimeMs: number | null;
  timeoutMs: number | null;
  outputBytes: number | null;
  /** the mechanism that enforces them: cgroup-v1, cgroup-v2, watchdog; null: not warm */
  mechanism: string | null;
}

/** The schema `TemplateNetwork` of the REST API. */
export interface TemplateNetwork {
  mode?: string;
  allow?: string[];
  deny?: string[];
}

/** The schema `TemplateAdded` of the REST API. */
export interface TemplateAdded {
  /** the text of the template */
  yaml?: string;
  /** or its values */
  template?: TemplateWanted;
  /** only check it: nothing is added */
  check?: boolean | null;
}

/** The schema `TemplateWanted` of the REST API. */
export interface TemplateWanted {
  /** of the format: 1.0 */
  version?: string | null;
  name: string;
  description?: string | null;
  /** a template whose values hold where this has none */
  extends?: string | null;
  python?: TemplatePythonWanted | null;
  nodejs?: TemplateNodeWanted | null;
  system?: TemplateSystemWanted | null;
  security?: TemplateSecurityWanted | null;
  limits?: LimitsWanted | null;
  network?: TemplateNetworkWanted | null;
  /** variables of every exec */
  env?: Record<string, string> | null;
  labels?: Record<string, string> | null;
  /** path below the workspace: text */
  files?: Record<string, string> | null;
  /** where its files are seen: at /workspace, or at / (root) */
  view?: "workspace" | "root" | null;
  /** NAME:PATH[:ro]: shared trees */
  attach?: string[] | null;
  /** workspaces are removed after this time */
  ttl?: string | null | number;
  /** ttl in milliseconds, instead of it */
  ttlMs?: number | null;
  /** workspaces are suspended after this time without activity */
  idleTimeout?: string | null | number;
  /** idle_timeout in milliseconds, instead of it */
  idleTimeoutMs?: number | null;
  /** the rules of a settings.json; `carrel template add` also takes the name of a file */
  settings?: Record<string, unknown> | null;
  /** a sources.json; `carrel template add` also takes the name of a file */
  sources?: Record<string, unknown> | null;
}

/** The schema `TemplatePythonWanted` of the REST API. */
export interface TemplatePythonWanted {
  /** such as 3.12 */
  version?: string | null;
  /** such as pandas>=2.1.0 */
  dependencies?: string[] | null;
}

/** The schema `TemplateNodeWanted` of the REST API. */
export interface TemplateNodeWanted {
  /** such as 20 */
  version?: string | null;
  /** what installs the packages */
  runtime?: "bun" | "npm" | null;
  /** such as axios: ^1.6.0 */
  dependencies?: Record<string, string> | null;
}

/** The schema `TemplateSystemWanted` of the REST API. */
export interface TemplateSystemWanted {
  /** the variable SHELL, and what carrel shell starts */
  shell?: string | null;
  /** the variable EDITOR */
  editor?: string | null;
}

/** The schema `TemplateSecurityWanted` of the REST API. */
export interface TemplateSecurityWanted {
  /** true: as network.mode open, unless that is given; false: as none */
  networkEnabled?: boolean | null;
  /** paths that must be read-only inside: an error where they are not */
  filesystemReadonly?: string[] | null;
  /** paths that must be writable inside: an error where they are not */
  filesystemWritable?: string[] | null;
}

/** Limits apply to the whole sandbox. Sizes are bytes or text such as "512M", durations text such as "30s". The limits in a response can be sent back unchanged. */
export interface LimitsWanted {
  /** memory of all processes and tmpfs together (default 2G) */
  memory?: number | string | null;
  /** memory in bytes, instead of it */
  memoryBytes?: number | null;
  /** size of /workspace, /.cache and changes of /env (default 1G) */
  disk?: number | string | null;
  /** disk in bytes, instead of it */
  diskBytes?: number | null;
  /** size of /tmp and /dev/shm together (default half of memory) */
  tmp?: number | string | null;
  /** tmp in bytes, instead of it */
  tmpBytes?: number | null;
  /** processes and threads (default 1024) */
  pids?: number | null;
  /** open files of a process (default 1024) */
  fds?: number | null;
  /** number of CPUs, such as 0.5 (default no limit) */
  cpus?: number | string | null;
  /** cpu time of one exec (default no limit) */
  cpuTime?: string | null | number;
  /** cpu_time in milliseconds, instead of it */
  cpuTimeMs?: number | null;
  /** wall time of one exec, unless the exec sets its own */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
  /** bytes of output of one exec */
  output?: number | string | null;
  /** output in bytes, instead of it */
  outputBytes?: number | null;
  /** set in responses; ignored in requests */
  mechanism?: string | null;
}

/** The schema `TemplateNetworkWanted` of the REST API. */
export interface TemplateNetworkWanted {
  /** none, list or open */
  mode?: string | null;
  /** hosts that may be reached */
  allow?: string[] | null;
  /** hosts that may not, though they are allowed */
  deny?: string[] | null;
}

/** The schema `Trees` of the REST API. */
export interface Trees {
  items: Tree[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** A directory that workspaces share. */
export interface Tree {
  name: string;
  /** that have it attached */
  workspaces: string[];
}

/** The schema `TreeWanted` of the REST API. */
export interface TreeWanted {
  name: string;
}

/** The schema `Approvals` of the REST API. */
export interface Approvals {
  items: Approval[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** A question put to a person: may this command run? */
export interface Approval {
  id: string;
  /** its id */
  workspace: string;
  workspaceName: string;
  /** id of the exec that waits for it */
  exec: string;
  state: "pending" | "approved" | "denied" | "expired";
  /** the program and its arguments; or command */
  argv?: string[];
  /** for /bin/sh -c */
  command?: string;
  /** null: the workspace's directory */
  cwd: string | null;
  /** the variables that it gets: its own and those of the workspace; null: set, but hidden, since it looks like a secret */
  env: Record<string, string | null>;
  /** all of its stdin; null: empty, or open_stdin */
  stdin: string | null;
  /** its stdin is written while it runs */
  openStdin: boolean;
  /** it has a terminal */
  tty: boolean;
  /** of argv, command, cwd, env and stdin: base64 if one of them isn't UTF-8 */
  encoding: "utf-8" | "base64";
  /** how the policy judged it */
  trail: PolicyStep[];
  /** steps are left out, those that were allowed first */
  trailTruncated: boolean;
  /** the principal that runs it */
  requestedBy: string;
  createdAt: string;
  /** it is denied then */
  expiresAt: string;
  /** or when it expired */
  answeredAt: string | null;
  /** null: no reviewer has answered */
  answeredBy: string | null;
  /** of the reviewer, or why it has expired */
  note: string | null;
  /** that were added to the policy by the answer */
  rules: string[];
  /** that approve with always adds: exactly these */
  suggestedRules: string[];
  /** why there are no such rules; null: there are */
  alwaysRefused: string | null;
}

/** One step of a judgement. */
export interface PolicyStep {
  /** the command, file or host that was judged */
  subject: string;
  /** that decided; null: none */
  rule: string | null;
  /** why, where no rule decided */
  reason: string | null;
  /** allow, ask or deny */
  decision: string;
}

/** The schema `ApprovalAnswer` of the REST API. */
export interface ApprovalAnswer {
  decision: "approve" | "deny";
  /** with approve: also add rules to the policy of the workspace that allow the same command from now on; the answer shows them */
  always?: boolean | null;
  /** for the requester */
  note?: string | null;
}

/** The schema `Agents` of the REST API. */
export interface Agents {
  items: Agent[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Agent` of the REST API. */
export interface Agent {
  id: string;
  name: string;
  /** when it was added first */
  createdAt: string;
  version: string;
  description: string;
  default: boolean;
  skills: AgentSkill[];
  /** null: it has no extended card */
  extended: AgentExtended | null;
  /** shell: the text of a message is a command; command: a program gets the messages */
  kind: "shell" | "command";
  command?: string[];
  template: string | null;
  settings?: Record<string, unknown>;
  sources?: Record<string, unknown>;
  limits: Limits;
  env?: Record<string, string>;
  timeoutMs: number;
  ttlMs: number;
  namespace: string | null;
  auth: "token" | "none";
  approver: "client" | "reviewer";
  workspaceWithoutContext: boolean;
  maxContexts: number;
  maxTasks: number;
  push: string[] | null;
  /** as it was added */
  yaml: string;
}

/** As the card of A2A has it. */
export interface AgentSkill {
  id: string;
  name: string;
  description: string;
  tags: string[];
  examples?: string[];
}

/** What the card for authenticated clients has. */
export interface AgentExtended {
  description: string | null;
  /** besides the public ones */
  skills: AgentSkill[];
}

/** The schema `AgentAdded` of the REST API. */
export interface AgentAdded {
  /** the text of the agent */
  yaml: string;
  /** only check it: nothing is added */
  check?: boolean | null;
}

/** The schema `Tokens` of the REST API. */
export interface Tokens {
  items: Token[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Token` of the REST API. */
export interface Token {
  id: string;
  name: string | null;
  /** admin: everything; user: look at workspaces and use them; reviewer: look at them and answer approvals */
  scope: "admin" | "user" | "reviewer";
  /** the id of the only workspace that it reaches; null: all */
  workspace: string | null;
  /** of that workspace */
  workspaceName: string | null;
  /** the principal that made it */
  createdBy: string;
  createdAt: string;
  /** null: it doesn't expire */
  expiresAt: string | null;
  /** within ten minutes; null: never */
  lastUsedAt: string | null;
  /** the token itself, for `Authorization: Bearer`: only in the answer that made it */
  text?: string;
}

/** The schema `TokenWanted` of the REST API. */
export interface TokenWanted {
  /** user when not given */
  scope?: "admin" | "user" | "reviewer" | null;
  /** id or name of the only workspace that it reaches; all when not given */
  workspace?: string | null;
  /** for lists */
  name?: string | null;
  /** it expires after this time; never when not given */
  ttl?: string | null | number;
  /** ttl in milliseconds, instead of it */
  ttlMs?: number | null;
}

/** The schema `CodeWanted` of the REST API. */
export interface CodeWanted {
  /** the name of the file, which ends in .py or .sh; main.py when not given */
  file?: string | null;
  /** what the file holds */
  code: string;
  /** the name of the tests' file: .py for pytest, .sh for a shell; test_ and the name of the file when not given */
  testsFile?: string | null;
  /** what the tests' file holds */
  tests?: string | null;
  /** requirements of Python packages */
  packages?: string[] | null;
  /** a version of Python */
  python?: string | null;
  /** the whole input: text, or \{"base64": …\} */
  stdin?: string | null | { base64: string };
  /** variables */
  env?: Record<string, string> | null;
  limits?: LimitsWanted | null;
  network?: NetworkWanted | null;
  /** wall time of the file, and of its tests; 300 s when not given */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
}

/** The schema `NetworkWanted` of the REST API. */
export interface NetworkWanted {
  /** none: only loopback; list: the hosts of `allow`; open: all public hosts. Default: list when something is allowed, else none */
  mode?: string | null;
  /** host, *.host, either with :port, or an address; registries: the package indexes that the host's clients are configured with */
  allow?: string[] | null;
  /** the same; wins over `allow` */
  deny?: string[] | null;
}

/** The schema `CodeResult` of the REST API. */
export interface CodeResult {
  /** of the exec */
  id: string;
  exitCode: number;
  signal: number | null;
  reason: "exited" | "signaled" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "canceled" | "denied" | "daemon_lost";
  stdout: string;
  stderr: string;
  /** encoding of stdout and stderr: base64 if one isn't UTF-8, or if JSON would need more than 64 KiB and more than twice their bytes */
  encoding: "utf-8" | "base64";
  truncated: boolean;
  durationMs: number;
  cpuMs: number;
  maxRssBytes: number;
  /** the mechanism that enforced the limits */
  limits: string | null;
  /** null: there are none */
  tests: CodeTests | null;
}

/** The schema `CodeTests` of the REST API. */
export interface CodeTests {
  /** none: the file has no test; not_run: the code itself has failed */
  verdict: "passed" | "failed" | "none" | "not_run";
  /** how the tests ended; null: they weren't run */
  result: ResultInfo | null;
}

/** The schema `Result` of the REST API. */
export interface ResultInfo {
  /** of the exec */
  id: string;
  exitCode: number;
  signal: number | null;
  reason: "exited" | "signaled" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "canceled" | "denied" | "daemon_lost";
  stdout: string;
  stderr: string;
  /** encoding of stdout and stderr: base64 if one isn't UTF-8, or if JSON would need more than 64 KiB and more than twice their bytes */
  encoding: "utf-8" | "base64";
  truncated: boolean;
  durationMs: number;
  cpuMs: number;
  maxRssBytes: number;
  /** the mechanism that enforced the limits */
  limits: string | null;
}

/** The schema `Cases` of the REST API. */
export interface Cases {
  items: Case[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** An eval case. */
export interface Case {
  id: string;
  /** the id that its file gives it */
  name: string;
  /** created: its source may be sent; preparing: since its first cell; ready: cells run; failed: they fail */
  state: "created" | "preparing" | "ready" | "failed";
  description: string | null;
  /** as its file names it */
  source: string | null;
  /** id of the workspace that is prepared, to which the source is sent; null: the case was only checked */
  workspace: string | null;
  /** id of the prepared state */
  snapshot: string | null;
  /** workspaces of ended cells stay */
  keep: boolean;
  /** a case that isn't used for so long is removed, unless it keeps workspaces */
  ttlMs: number;
  /** why it has failed: install, editable, setup, snapshot, or restarted: the daemon was */
  reason: string | null;
  error: string | null;
  /** of the preparation */
  steps: CaseStep[];
  /** of every command; null: set, but hidden, since it looks like a secret */
  variables: Record<string, string | null>;
  createdAt: string;
  lastUsedAt: string;
  /** how many it has */
  cells: number;
}

/** One command of a case or a cell. */
export interface CaseStep {
  /** install, editable, setup, harness; or that of a grader */
  type: string;
  name: string;
  command: string;
  passed: boolean;
  exitCode: number;
  /** as of an exec; error: it could not be run */
  reason: string;
  durationMs: number;
  /** what it wrote to stdout and stderr */
  output: string;
  /** a middle part of the output is left out */
  truncated: boolean;
}

/** The schema `CaseWanted` of the REST API. */
export interface CaseWanted {
  /** the text of its file */
  yaml: string;
  /** the name of that file, for errors */
  file?: string | null;
  /** a shell command in place of its own */
  harness?: string | null;
  /** only reads it; nothing is made */
  check?: boolean | null;
  /** workspaces of ended cells stay until the case is removed */
  keep?: boolean | null;
  /** remove the case when it isn't used for so long, unless it keeps workspaces; 1 h when not given */
  ttl?: string | null | number;
  /** ttl in milliseconds, instead of it */
  ttlMs?: number | null;
}

/** The schema `Cells` of the REST API. */
export interface Cells {
  items: Cell[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** One run of a case. */
export interface Cell {
  id: string;
  /** id of its case */
  case: string;
  state: "waiting" | "harness" | "grading" | "passed" | "failed" | "canceled";
  caseName: string;
  /** which run of the case it is, from 1 */
  repeat: number;
  /** why it hasn't passed: case (its preparation has failed), harness, grader, workspace, removed, or restarted: the daemon was */
  reason: string | null;
  error: string | null;
  /** id, while there is one */
  workspace: string | null;
  /** from its fork to its verdict */
  durationMs: number;
  /** the harness, then the graders */
  steps: CaseStep[];
  /** what the harness changed, as a patch */
  diff: string | null;
  /** its end is left out */
  diffTruncated: boolean;
  /** of every command; null: set, but hidden, since it looks like a secret */
  variables: Record<string, string | null>;
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
}

/** The schema `CellWanted` of the REST API. */
export interface CellWanted {
  /** which run of the case it is; 1 when not given */
  repeat?: number | null;
}

/** The schema `Tools` of the REST API. */
export interface Tools {
  items: Tool[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Tool` of the REST API. */
export interface Tool {
  /** of this version */
  id: string;
  name: string;
  /** 1, 2, 3 ... of the tool */
  version: number;
  /** active: calls run this version; dormant: it isn't loaded; else it is being forged */
  state: "dormant" | "creating" | "installing" | "testing" | "active" | "cleanup";
  /** the requirement that it was made of */
  package: string | null;
  description: string | null;
  /** requirements of Python packages */
  requires: string[];
  /** a version */
  python: string | null;
  /** what it was tested and is called in */
  environment: string | null;
  /** id of the workspace that calls run in; null: it has none */
  workspace: string | null;
  /** its tests have passed */
  passed: boolean;
  /** why it is dormant */
  error: string | null;
  /** of the code */
  sha256: string;
  /** how long it took to forge it */
  forgeMs: number;
  /** how long it is kept when it isn't active */
  ttlMs: number;
  createdAt: string;
  /** its state has changed then */
  changedAt: string;
  /** null: it is active */
  expiresAt: string | null;
  network: Network;
  /** left out in lists */
  code?: string;
  /** left out in lists */
  tests?: string;
  /** what the tests have printed, the last 64 KiB of it; left out in lists */
  output?: string;
}

/** What its sandboxes may reach; they have no other network. */
export interface Network {
  /** none: only loopback; list: the hosts of `allow`; open: all public hosts. Default: list when something is allowed, else none */
  mode: string;
  /** host, *.host, either with :port, or an address; registries: the package indexes that the host's clients are configured with */
  allow: string[];
  /** the same; wins over `allow` */
  deny: string[];
  /** since the daemon began */
  connections?: number;
  /** by the lists */
  refused?: number;
  /** allowed, but not reached */
  failed?: number;
  receivedBytes?: number;
  sentBytes?: number;
  /** policies that let only a part of it be reached; mode none then: nothing */
  boundedBy?: string[];
}

/** The schema `ToolWanted` of the REST API. */
export interface ToolWanted {
  /** a new tool, or the next version of one */
  name?: string | null;
  /** tool.py: a Python module with a function run */
  code?: string | null;
  /** test_tool.py: tests for pytest, which import tool */
  tests?: string | null;
  /** a requirement, instead of name, code and tests: the tool pypi_PACKAGE is made with an adapter */
  package?: string | null;
  /** requirements of Python packages */
  requires?: string[] | null;
  /** a version of Python */
  python?: string | null;
  /** for lists */
  description?: string | null;
  /** what the tests and calls may reach */
  network?: NetworkWanted | null;
  /** of the tests and of calls */
  limits?: LimitsWanted | null;
  /** of the tests; 300 s when not given */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
  /** how long this version is kept when it isn't active; 24 h when not given */
  ttl?: string | null | number;
  /** ttl in milliseconds, instead of it */
  ttlMs?: number | null;
}

/** The schema `ToolSpec` of the REST API. */
export interface ToolSpec {
  /** of the tool */
  name: string;
  /** what the tool is to do */
  description?: string | null;
  /** of run: names and examples */
  arguments?: Record<string, unknown> | null;
  /** requirements of Python packages */
  requires?: string[] | null;
}

/** The schema `ToolSource` of the REST API. */
export interface ToolSource {
  /** of the tool */
  name: string;
  /** tool.py */
  code: string;
  /** test_tool.py */
  tests: string;
  /** requirements of Python packages */
  requires: string[];
  /** by the operator's generator; false: skeletons, whose tests fail */
  generated: boolean;
}

/** The schema `ToolCall` of the REST API. */
export interface ToolCall {
  /** of the function run, by name */
  arguments?: Record<string, unknown> | null;
  /** 300 s when not given */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
  /** another version than the active one, that still has its workspace */
  version?: number | null;
}

/** The schema `ToolResult` of the REST API. */
export interface ToolResult {
  /** its name */
  tool: string;
  version: number;
  /** there is a result */
  ok: boolean;
  /** what run returned; null when it has failed */
  result: unknown;
  /** null: there is a result */
  error: ToolFailure | null;
  /** what the tool has printed */
  stdout: string;
  stderr: string;
  /** of both: utf-8 or base64 */
  encoding: string;
  durationMs: number;
}

/** The schema `ToolFailure` of the REST API. */
export interface ToolFailure {
  /** raised: run raised an exception; invalid_result: it returned what isn't JSON; exited: the process ended without a result; else what ended it */
  reason: "raised" | "invalid_result" | "exited" | "signaled" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "canceled" | "denied";
  /** of the exception */
  type: string | null;
  message: string;
  /** of the exception */
  traceback: string | null;
}

/** The schema `ToolRollback` of the REST API. */
export interface ToolRollback {
  /** when not given: the newest one below the active one that has passed its tests */
  version?: number | null;
}

/** The schema `WorkspaceWanted` of the REST API. */
export interface WorkspaceWanted {
  /** the workspace is removed after this time, a context of an agent when it was not used for so long */
  ttl?: string | null | number;
  /** ttl in milliseconds, instead of it */
  ttlMs?: number | null;
  /** generated when not given */
  name?: string | null;
  /** its values hold where none are given */
  template?: string | null;
  /** the workspace is suspended after this time without activity */
  idleTimeout?: string | null | number;
  /** idle_timeout in milliseconds, instead of it */
  idleTimeoutMs?: number | null;
  /** context_id also names the workspace, and, as agent and namespace, stays as it is; those that begin with carrel. are of services */
  labels?: Record<string, string> | null;
  /** the name of an existing environment */
  environment?: string | null;
  /** a version, or the packages of the environment */
  python?: PythonWanted | string | null;
  /** a version, or the packages of an environment of Node */
  node?: NodeWanted | string | null;
  /** variables of every exec */
  env?: Record<string, string> | null;
  limits?: LimitsWanted | null;
  network?: NetworkWanted | null;
  /** with scripts/ data/ repos/ output/, .venv and .context.json */
  context?: boolean | null;
  /** its processes may trace each other: gdb, strace, LeakSanitizer */
  ptrace?: boolean | null;
  /** where its files are seen inside: at /workspace, or at / (root) */
  view?: "workspace" | "root" | null;
  /** directory of the host that is /workspace; needs a descriptor, which `carrel create --dir` passes */
  dir?: string | null;
  /** SOURCE:TARGET[:ro] of the host; needs descriptors, which `carrel create -v` passes */
  mounts?: string[] | null;
  /** NAME:PATH[:ro]: shared trees */
  attach?: string[] | null;
  /** a snapshot (its id) or a workspace: the new one begins with its files, environment, limits, labels and variables */
  from?: string | null;
  /** what commands and files may be used: a settings.json, whose rules hold besides those of the operator and the template */
  settings?: Record<string, unknown> | null;
  /** what may be installed, reached and run: a sources.json, which holds besides those of the operator and the template */
  sources?: Record<string, unknown> | null;
}

/** The packages of a Python environment, which is built if it doesn't exist. */
export interface PythonWanted {
  /** such as 3.12 */
  version?: string | null;
  /** the text of a requirements file */
  requirements?: string | null;
  /** such as requests==2.32.3 */
  packages?: string[] | null;
  /** lines of a constraints file, such as urllib3<2 */
  constraints?: string[] | null;
  /** PyTorch for cpu, cu126, ... or auto, as uv names them */
  torchBackend?: string | null;
  /** allow pre-releases */
  pre?: boolean | null;
  /** build packages that have no wheel, in a sandbox without network */
  allowBuild?: boolean | null;
}

/** The packages of a Node environment, which is built if it doesn't exist. */
export interface NodeWanted {
  /** such as 22 */
  version?: string | null;
  /** such as axios or typescript\@5 */
  packages?: string[] | null;
  /** the text of a package.json */
  packageJson?: string | null;
  /** the text of its bun.lock or package-lock.json */
  lock?: string | null;
  /** what installs the packages: bun or npm */
  runtime?: string | null;
  /** run install scripts of packages, in a sandbox without a network; environments.allow_scripts of config.yaml must allow it */
  allowScripts?: boolean | null;
}

/** The schema `Workspace` of the REST API. */
export interface WorkspaceInfo {
  id: string;
  name: string;
  /** ready: usable, and nothing runs; running: an exec runs, also in the background, or a process that an earlier exec left behind */
  state: "creating" | "ready" | "running" | "suspended" | "failed" | "deleting";
  template: string | null;
  /** keys of its template that have no effect in this version, or what of an archive was not restored */
  warnings?: string[];
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  idleTimeoutMs: number | null;
  /** also what services and core say of it: carrel.service, context_id, agent, ... */
  labels: Record<string, string>;
  environment: string | null;
  /** that of Node */
  nodeEnvironment?: string;
  /** variables of every exec; null: set, but hidden, since its name or value looks like a secret */
  env: Record<string, string | null>;
  limits: Limits;
  network: Network;
  diskUsageBytes: number;
  diskLimitMechanism: string | null;
  isolation: string;
  layersActive: string[];
  /** a sandbox is ready: the next exec starts at once */
  warm: boolean;
  /** what is under way with it, besides execs: a snapshot of it is being made, ... */
  inUse?: string[];
  ptrace: boolean;
  view: "workspace" | "root";
  dir?: string;
  mounts?: string[];
  attach?: string[];
  /** the snapshot that its state is based on */
  snapshot: string | null;
  error: string | null;
  settings?: Record<string, unknown>;
  /** the settings of its template, which hold as well */
  templateSettings?: Record<string, unknown>;
  /** rules that reviewers have added by allowing something from then on */
  rules?: string[];
  sources?: Record<string, unknown>;
  /** the sources of its template, which hold as well */
  templateSources?: Record<string, unknown>;
}

/** The schema `Workspaces` of the REST API. */
export interface Workspaces {
  items: WorkspaceInfo[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** Fields that are not given stay unchanged. */
export interface WorkspaceChange {
  /** labels to set; null removes a label; context_id, agent and namespace stay */
  labels?: Record<string, string | null> | null;
  /** variables to set for new execs; null removes a variable */
  env?: Record<string, string | null> | null;
  /** only while no exec runs; null: unchanged */
  limits?: LimitsWanted | null;
  /** holds for new connections; from none only while no exec runs */
  network?: NetworkChange | null;
  /** from now; null: none */
  ttl?: string | null | number;
  /** ttl in milliseconds, instead of it */
  ttlMs?: number | null;
  /** null: none */
  idleTimeout?: string | null | number;
  /** idle_timeout in milliseconds, instead of it */
  idleTimeoutMs?: number | null;
  /** a settings.json in place of the one it has; null: none; only while no exec runs */
  settings?: Record<string, unknown> | null;
  /** a sources.json in place of the one it has; null: none; only while no exec runs */
  sources?: Record<string, unknown> | null;
}

/** What its sandboxes may reach. Fields that are not given stay unchanged. */
export interface NetworkChange {
  /** none, list or open */
  mode?: string;
  /** in place of what is allowed now */
  allow?: string[];
  /** in place of what is denied now */
  deny?: string[];
}

/** An archived workspace. */
export interface Archive {
  name: string;
  /** the name that it had */
  workspace: string;
  /** tar.zst or tar.gz */
  format: string;
  createdAt: string;
  sizeBytes: number;
}

/** The schema `Archives` of the REST API. */
export interface Archives {
  items: Archive[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `RestoreWanted` of the REST API. */
export interface RestoreWanted {
  /** of the workspace; the one that it had when not given */
  name?: string | null;
}

/** The schema `Exports` of the REST API. */
export interface Exports {
  items: Export[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** An exported environment of the blob store. */
export interface Export {
  name: string;
  createdAt: string;
  sizeBytes: number;
}

/** The schema `AgentPackages` of the REST API. */
export interface AgentPackages {
  items: Export[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Deployments` of the REST API. */
export interface Deployments {
  items: Deployment[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Deployment` of the REST API. */
export interface Deployment {
  deploymentId: string;
  /** its routes take it in place of the id */
  name: string;
  /** of the revision that is being rolled out, else of the live one */
  status: "downloading" | "building_env" | "installing_deps" | "starting" | "healthy" | "unhealthy" | "failed" | "stopped";
  agentAppId: string;
  /** of the live revision, else of the next */
  version: string;
  packageUrl: string;
  /** of the package */
  sha256: string | null;
  /** the live one; 0: none is */
  revision: number;
  /** of the latest rollout, or of a surface */
  error: string | null;
  createdAt: string;
  updatedAt: string;
  /** the latest one */
  rollout: DeploymentRollout;
  /** of the live revision; null: none is live */
  venv: DeploymentVenv | null;
  /** of the live revision, else of the next */
  surfaces: Surface[];
}

/** The schema `DeploymentRollout` of the REST API. */
export interface DeploymentRollout {
  revision: number;
  version: string | null;
  /** healthy: it is live; failed: what was live still is */
  status: "downloading" | "building_env" | "installing_deps" | "starting" | "healthy" | "unhealthy" | "failed" | "stopped";
  error: string | null;
}

/** The schema `DeploymentVenv` of the REST API. */
export interface DeploymentVenv {
  /** inside the surfaces */
  path: string;
  /** of the environment: carrel env show */
  name: string;
  /** index: of the packages of an index; package: of the wheels in its package.venv.tar.gz */
  source: string;
  /** of requirements.txt, or no-deps */
  requirementsSha256: string;
  createdAt: string;
  pythonVersion: string;
  /** names and versions */
  installedPackages: Record<string, string>;
  /** nothing was installed for it: it, or all of its packages, were there */
  cached: boolean;
}

/** The schema `Surface` of the REST API. */
export interface Surface {
  /** rest, a2a or ui */
  name: string;
  /** starting, healthy, unhealthy or stopped */
  status: string;
  /** where the daemon forwards requests to it */
  url: string;
  /** in its workspace */
  port: number;
  /** its sandbox, for carrel port and carrel exec */
  workspace: string | null;
  /** its process, for GET /v1/execs/\{id\}/output */
  exec: string | null;
  /** since it was rolled out */
  restarts: number;
  /** why it isn't healthy */
  error: string | null;
}

/** The schema `DeploymentWanted` of the REST API. */
export interface DeploymentWanted {
  /** the agent */
  agentAppId: string;
  /** that of agent.yaml */
  version: string;
  /** of the deployment, agentAppId when not given; one that is there is replaced, without a failed request */
  name?: string | null;
  /** blob:NAME of a stored package (default: blob:\{agentAppId\}\@\{version\}), or an http or https URL: unless the package \{agentAppId\}\@\{version\} is stored already, with the sha256 if one is given, it is fetched and stored under that name */
  packageUrl?: string | null;
  /** that the package must have */
  sha256?: string | null;
  /** make the environment again although it exists, with the versions that were resolved before, and put it in the place of the one that is there */
  rebuildVenv?: boolean | null;
  /** look for neither the environment nor the versions that were resolved before: resolve again, to the newest that requirements.txt allows */
  skipVenvCache?: boolean | null;
  /** fetch a packageUrl of http or https, and unpack the package, although both were done already; the environment is reused */
  forceRefresh?: boolean | null;
  /** index in place of the host's; it and the next two fail the rollout unless config.yaml has allow_options */
  pipIndexUrl?: string | null;
  /** another index, asked first: packages that it has are taken from it */
  pipExtraIndexUrl?: string | null;
  /** HOST or HOST:PORT of an index whose certificate isn't checked */
  pipTrustedHost?: string | null;
  /** variables of all surfaces */
  env?: Record<string, string> | null;
  /** what the surfaces may reach; nothing by default */
  network?: NetworkWanted | null;
  /** the policy of the surfaces */
  settings?: Record<string, unknown> | null;
}

/** The schema `Suspend` of the REST API. */
export interface Suspend {
  /** end the commands that run in it */
  force?: boolean | null;
}

/** The schema `WorkspaceHealth` of the REST API. */
export interface WorkspaceHealth {
  /** its id */
  workspace: string;
  name: string;
  /** before the check */
  state: "creating" | "ready" | "running" | "suspended" | "failed" | "deleting";
  /** there are no issues */
  healthy: boolean;
  /** .workspace_configured exists */
  configured: boolean;
  /** .venv exists and its Python runs */
  pythonVenv: boolean;
  /** every declared Python package was imported */
  pythonDepsInstalled: boolean;
  /** node_modules exists */
  nodeModules: boolean;
  /** node_modules has every dependency of package.json */
  nodeDepsInstalled: boolean;
  /** bytes */
  diskUsage: number;
  /** bytes */
  diskLimit: number;
  diskLimitMechanism: string | null;
  environment: string | null;
  nodeEnvironment: string | null;
  /** layers of its environments */
  environmentLayers: number;
  /** layers of snapshots and of its template */
  snapshotLayers: number;
  /** files of layers were compared with their hashes */
  deep: boolean;
  /** of the isolation */
  layersActive: string[];
  /** what is wrong; empty: nothing */
  issues: string[];
}

/** The schema `IsolationVerdict` of the REST API. */
export interface IsolationVerdict {
  /** its id */
  workspace: string;
  name: string;
  /** all checks are */
  ok: boolean;
  /** no command ran there that could have faked what was seen from inside */
  insideTrusted: boolean;
  layers: IsolationCheck[];
}

/** The schema `IsolationCheck` of the REST API. */
export interface IsolationCheck {
  /** seccomp, capabilities, network_namespace, … */
  name: string;
  ok: boolean;
  /** outside: by the daemon, from the kernel; inside: by a process there */
  seenFrom: "outside" | "inside";
  /** what was seen */
  detail: string;
}

/** The schema `WorkspaceRepair` of the REST API. */
export interface WorkspaceRepair {
  /** what was repaired */
  done: string[];
  /** what can't be repaired, and why */
  failed: string[];
  /** afterwards */
  health: WorkspaceHealth;
}

/** The schema `SnapshotWanted` of the REST API. */
export interface SnapshotWanted {
  /** names the snapshot; one of a workspace has it */
  tag?: string | null;
  note?: string | null;
  /** while commands run: pause them and copy what was changed (the default), wait until they have ended, or fail */
  whenBusy?: "pause" | "wait" | "fail" | null;
  /** how long to wait; 5m when not given */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
}

/** The schema `Snapshot` of the REST API. */
export interface Snapshot {
  id: string;
  /** the id of the workspace it was made of */
  workspace: string;
  workspaceName: string;
  /** 1, 2, 3 ... of the workspace */
  version: number;
  tag: string | null;
  note: string | null;
  createdAt: string;
  /** bytes on disk of what was changed since the snapshot below; null: not measured yet */
  sizeBytes: number | null;
  /** topmost first */
  layers: string[];
  /** that the workspace had */
  environment: string | null;
  /** that of Node */
  nodeEnvironment?: string;
  /** of the workspace */
  view: "workspace" | "root";
  /** made by a rollback, of the state that it left */
  automatic: boolean;
  /** stays when its workspace is removed */
  kept: boolean;
  /** hash of its topmost layer; null: not computed yet */
  contentId: string | null;
}

/** The schema `Snapshots` of the REST API. */
export interface Snapshots {
  items: Snapshot[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `PullWanted` of the REST API. */
export interface PullWanted {
  /** the name of the workspace that was pushed */
  workspace: string;
  /** id, tag or version of a snapshot of it that was pushed */
  snapshot: string;
}

/** The schema `SnapshotVerdict` of the REST API. */
export interface SnapshotVerdict {
  /** its id */
  snapshot: string;
  /** no layer has a problem */
  ok: boolean;
  /** topmost first */
  layers: LayerVerdict[];
}

/** The schema `LayerVerdict` of the REST API. */
export interface LayerVerdict {
  name: string;
  /** null where there is a problem */
  contentId: string | null;
  /** missing, changed, or why it can't be read; null: none */
  problem: string | null;
}

/** The schema `RollbackWanted` of the REST API. */
export interface RollbackWanted {
  /** id, tag or version of a snapshot of this workspace */
  snapshot: string;
  /** while commands run: wait until they have ended, or fail (the default) */
  whenBusy?: "wait" | "fail" | null;
  /** how long to wait; 5m when not given */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
}

/** The schema `PushWanted` of the REST API. */
export interface PushWanted {
  /** id, tag or version of a snapshot of this workspace */
  snapshot: string;
  /** send also the layers that the blob store has */
  force?: boolean | null;
}

/** What a push has done. */
export interface Push {
  /** its id */
  snapshot: string;
  /** its name */
  workspace: string;
  /** of its manifest in the blob store */
  key: string;
  /** that it has */
  layers: number;
  /** that the blob store lacked */
  sentLayers: number;
  /** bytes of these, compressed */
  sentBytes: number;
}

/** The schema `ForkWanted` of the REST API. */
export interface ForkWanted {
  /** of the new workspace; with a count NAME-1, NAME-2 ...; generated when not given */
  name?: string | null;
  /** 1 when not given */
  count?: number | null;
  /** id, tag or version of a snapshot; the present state when not given */
  snapshot?: string | null;
  /** while commands run: pause them and copy what was changed (the default), wait until they have ended, or fail */
  whenBusy?: "pause" | "wait" | "fail" | null;
  /** how long to wait; 5m when not given */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
}

/** What a workspace uses. */
export interface WorkspaceMetrics {
  /** of the workspace */
  id: string;
  name: string;
  state: "creating" | "ready" | "running" | "suspended" | "failed" | "deleting";
  /** it has a sandbox; else nothing runs in it */
  warm: boolean;
  /** when the sandbox was looked at: at most five times a second */
  measuredAt: string | null;
  /** cpu time of the sandbox since its start */
  cpuMs: number;
  /** share of one cpu between the last two looks; null after the first */
  cpuPercent: number | null;
  /** of all processes and tmpfs; pages that processes share count once for each */
  memoryBytes: number;
  memoryLimitBytes: number | null;
  /** processes and threads */
  pids: number;
  pidsLimit: number | null;
  /** as last measured */
  diskUsageBytes: number;
  diskLimitBytes: number | null;
  /** that run */
  execs: number;
}

/** The schema `Metrics` of the REST API. */
export interface Metrics {
  items: WorkspaceMetrics[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Packages` of the REST API. */
export interface Packages {
  items: Package[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Package` of the REST API. */
export interface Package {
  /** of Python: normalised */
  name: string;
  version: string;
  kind: "python" | "node";
  /** asked for by name, not only a dependency */
  requested: boolean;
  /** workspace: a command in it installed the package */
  source: "environment" | "workspace";
}

/** The schema `PackagesWanted` of the REST API. */
export interface PackagesWanted {
  /** such as pandas>=2, of Node axios\@1; names alone, to uninstall them */
  packages: string[];
  /** python when not given */
  kind?: "python" | "node" | null;
  /** whether pyproject.toml, of Node package.json, in /workspace is changed too; true when not given */
  persist?: boolean | null;
}

/** The schema `PackagesChanged` of the REST API. */
export interface PackagesChanged {
  /** the new environment of the workspace */
  environment: string;
  /** new packages, and new versions */
  installed: PackageVersion[];
  /** packages and versions that are gone */
  removed: PackageVersion[];
  /** something runs in the workspace: the files were copied into its sandbox */
  live: boolean;
  /** pyproject.toml or package.json was changed */
  persisted: boolean;
}

/** The schema `PackageVersion` of the REST API. */
export interface PackageVersion {
  name: string;
  version: string;
}

/** The schema `ExecWanted` of the REST API. */
export interface ExecWanted {
  /** the program and its arguments */
  argv?: string[];
  /** for /bin/sh -c */
  command?: string;
  /** absolute, or from the workspace's directory on, which it is when not given: /workspace, or / in view root */
  cwd?: string | null;
  /** variables, on top of the workspace's */
  env?: Record<string, string> | null;
  /** the whole input: text, or \{"base64": …\} */
  stdin?: string | null | { base64: string };
  /** stdin is fed by POST /v1/execs/\{id\}/stdin */
  openStdin?: boolean | null;
  /** wall time; when not given: the workspace's limit, else 300 s; no limit with background or tty */
  timeout?: string | null | number;
  /** timeout in milliseconds, instead of it */
  timeoutMs?: number | null;
  limits?: ExecLimits | null;
  /** with a terminal of its own */
  tty?: boolean | null;
  /** of the terminal; 24 when not given */
  rows?: number | null;
  /** of the terminal; 80 when not given */
  columns?: number | null;
  /** respond as soon as the command runs; it continues without the client */
  background?: boolean | null;
  /** the user of the sandbox: agent, or 1000 */
  user?: string | null;
  /** if the policy asks for an approval: wait for it (the default), or return 202; the command then waits as a background exec, without streams of the client */
  approval?: "wait" | "return" | null;
  /** learn (scope admin, text/event-stream): run what no rule denies, and send the rules that would allow it as the event learned */
  policy?: "enforce" | "learn" | null;
}

/** The schema `ExecLimits` of the REST API. */
export interface ExecLimits {
  /** cpu time of all its processes */
  cpuTime?: string | null | number;
  /** cpu_time in milliseconds, instead of it */
  cpuTimeMs?: number | null;
  /** bytes of output; when not given: the workspace's limit, else 64M if it is captured or kept */
  output?: number | string | null;
  /** output in bytes, instead of it */
  outputBytes?: number | null;
}

/** The data of an event of an exec: waiting and learned where they apply; start, stdout and stderr as they come; then exit. One that is denied has no start. */
export type ExecEvent = ExecWaitingEvent | ExecLearnedEvent | ExecStartEvent | ExecOutputEvent | ExecExitEvent | ExecErrorEvent;

/** The exec waits for an approval. */
export interface ExecWaitingEvent {
  /** the name of the event */
  type: "waiting";
  /** of the exec */
  id: string;
  /** id of the approval that it waits for */
  approval: string;
}

/** With `policy: learn`, before start. */
export interface ExecLearnedEvent {
  /** the name of the event */
  type: "learned";
  /** of the policy: allow, ask or deny */
  decision: string;
  /** what it would be with the rules */
  decisionWithRules: string;
  /** that would allow the command */
  rules: string[];
  /** how the policy judged it */
  trail: PolicyStep[];
}

/** The command runs. */
export interface ExecStartEvent {
  /** the name of the event */
  type: "start";
  /** of the exec */
  id: string;
}

/** A piece of output. A character is never cut in two. */
export interface ExecOutputEvent {
  /** the name of the event */
  type: "stdout" | "stderr";
  data: string;
  /** of data */
  encoding: "utf-8" | "base64";
}

/** The last event: the result. Its stdout and stderr are empty: they were sent before. */
export interface ExecExitEvent {
  /** of the exec */
  id: string;
  exitCode: number;
  signal: number | null;
  reason: "exited" | "signaled" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "canceled" | "denied" | "daemon_lost";
  stdout: string;
  stderr: string;
  /** encoding of stdout and stderr: base64 if one isn't UTF-8, or if JSON would need more than 64 KiB and more than twice their bytes */
  encoding: "utf-8" | "base64";
  truncated: boolean;
  durationMs: number;
  cpuMs: number;
  maxRssBytes: number;
  /** the mechanism that enforced the limits */
  limits: string | null;
  /** the name of the event */
  type: "exit";
}

/** The last event of an exec that was approved and then couldn't be started. */
export interface ExecErrorEvent {
  /** the name of the event */
  type: "error";
  /** what went wrong */
  code: "invalid" | "not_found" | "conflict" | "denied" | "limit" | "disk_full" | "unavailable" | "corrupt" | "failed" | "command_not_found" | "not_executable" | "canceled" | "unauthenticated" | "approval_required";
  /** for people */
  detail: string;
  /** how to correct it */
  hint: string | null;
  exitCode: number;
}

/** The schema `Exec` of the REST API. */
export interface ExecInfo {
  id: string;
  /** its id */
  workspace: string;
  state: "starting" | "running" | "ended" | "waiting";
  argv: string[];
  cwd: string | null;
  background: boolean;
  tty: boolean;
  startedAt: string | null;
  endedAt: string | null;
  exitCode: number | null;
  signal: number | null;
  reason: "exited" | "signaled" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "canceled" | "denied" | "daemon_lost" | null;
  outputBytes: number;
  /** how many of output_bytes are not kept: the oldest, of a background exec that has written more than its limit */
  outputDroppedBytes: number;
  durationMs: number | null;
  cpuMs: number | null;
  maxRssBytes: number | null;
  error: string | null;
}

/** The schema `ApprovalRequired` of the REST API. */
export interface ApprovalRequired {
  /** about:blank */
  type: string;
  /** of the status */
  title: string;
  /** 202 */
  status: number;
  code: "approval_required";
  /** for people */
  detail: string;
  /** the route of the approval */
  hint: string | null;
  /** as in the logs of the daemon */
  requestId: string;
  /** 126 */
  exitCode: number;
  /** id of the exec that waits */
  exec: string;
  approval: Approval;
}

/** The schema `Execs` of the REST API. */
export interface Execs {
  items: ExecInfo[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The data of an event of the output of a background exec. */
export type OutputEvent = ExecOutputEvent | OutputDroppedEvent | OutputExitEvent;

/** The oldest output was dropped, since the exec has written more than is kept. */
export interface OutputDroppedEvent {
  /** the name of the event */
  type: "dropped";
  stream: "stdout" | "stderr";
  /** offset of the first byte that isn't kept any more */
  from: number;
  /** offset of the next byte that is */
  to: number;
}

/** The last event: the exec, which has ended. */
export interface OutputExitEvent {
  id: string;
  /** its id */
  workspace: string;
  state: "starting" | "running" | "ended" | "waiting";
  argv: string[];
  cwd: string | null;
  background: boolean;
  tty: boolean;
  startedAt: string | null;
  endedAt: string | null;
  exitCode: number | null;
  signal: number | null;
  reason: "exited" | "signaled" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "canceled" | "denied" | "daemon_lost" | null;
  outputBytes: number;
  /** how many of output_bytes are not kept: the oldest, of a background exec that has written more than its limit */
  outputDroppedBytes: number;
  durationMs: number | null;
  cpuMs: number | null;
  maxRssBytes: number | null;
  error: string | null;
  /** the name of the event */
  type: "exit";
}

/** The schema `Signal` of the REST API. */
export interface SignalWanted {
  /** its name or number */
  signal: "HUP" | "SIGHUP" | "INT" | "SIGINT" | "QUIT" | "SIGQUIT" | "ILL" | "SIGILL" | "TRAP" | "SIGTRAP" | "ABRT" | "SIGABRT" | "BUS" | "SIGBUS" | "FPE" | "SIGFPE" | "KILL" | "SIGKILL" | "USR1" | "SIGUSR1" | "SEGV" | "SIGSEGV" | "USR2" | "SIGUSR2" | "PIPE" | "SIGPIPE" | "ALRM" | "SIGALRM" | "TERM" | "SIGTERM" | "CHLD" | "SIGCHLD" | "CONT" | "SIGCONT" | "STOP" | "SIGSTOP" | "TSTP" | "SIGTSTP" | "TTIN" | "SIGTTIN" | "TTOU" | "SIGTTOU" | "URG" | "SIGURG" | "XCPU" | "SIGXCPU" | "XFSZ" | "SIGXFSZ" | "VTALRM" | "SIGVTALRM" | "PROF" | "SIGPROF" | "WINCH" | "SIGWINCH" | "IO" | "SIGIO" | "PWR" | "SIGPWR" | "SYS" | "SIGSYS" | number;
  /** why the exec ends; only with KILL, from a client that passed the streams and counts their output */
  reason?: "output_limit" | null;
}

/** Of a terminal. */
export interface TerminalSize {
  rows: number;
  columns: number;
}

/** With list: the entries of the directory; with stat: the file itself. */
export type FileAnswer = FileInfos | FileInfo;

/** The schema `Files` of the REST API. */
export interface FileInfos {
  items: FileInfo[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `FileInfo` of the REST API. */
export interface FileInfo {
  /** bytes that aren't UTF-8 are shown as U+FFFD */
  name: string;
  /** the name's bytes, when they aren't UTF-8 */
  nameBase64?: string;
  type: "file" | "directory" | "link" | "fifo" | "socket" | "device";
  size: number;
  /** octal */
  mode: string;
  modifiedAt: string;
  /** the target of a link */
  link: string | null;
}

/** The schema `Changes` of the REST API. */
export interface Changes {
  items: Change[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** The schema `Change` of the REST API. */
export interface Change {
  /** from /workspace on; begins with /env/ for files of the environment; bytes that aren't UTF-8 are shown as U+FFFD */
  path: string;
  /** A: added, M: modified, D: deleted, T: another type of file */
  change: "A" | "M" | "D" | "T";
  type: "file" | "directory" | "link" | "fifo" | "socket" | "device";
  /** of a file; else null */
  sizeBefore: number | null;
  /** of a file; else null */
  sizeAfter: number | null;
  /** octal, where the mode differs */
  modeBefore?: string;
  /** octal, where the mode differs */
  modeAfter?: string;
}

/** The schema `ApplyWanted` of the REST API. */
export interface ApplyWanted {
  /** the workspace that gets the changes: id, name or context_id */
  to: string;
  /** only these and what is below them; all changes when not given */
  paths?: string[] | null;
  /** id, tag or version of a snapshot of the source: what changed since that one; the last one when not given */
  snapshot?: string | null;
  /** only say what would be done */
  dryRun?: boolean | null;
}

/** The schema `Applied` of the REST API. */
export interface Applied {
  /** how many changes were applied */
  applied: number;
  /** how many can't be */
  conflicts: number;
  /** in order of paths */
  changes: AppliedChange[];
}

/** The schema `AppliedChange` of the REST API. */
export interface AppliedChange {
  /** from /workspace on; bytes that aren't UTF-8 are shown as U+FFFD */
  path: string;
  /** the path's bytes, when they aren't UTF-8 */
  pathBase64?: string;
  /** A: added, M: modified, D: deleted, T: another type of file */
  change: "A" | "M" | "D" | "T";
  type: "file" | "directory" | "link" | "fifo" | "socket" | "device";
  /** pending: nothing was applied; same: the target has it already; conflict: the target has neither what the source had before nor what it has now; refused: not a file, a directory or a link */
  result: "applied" | "pending" | "same" | "conflict" | "refused";
  /** of conflict and refused; else null */
  reason: string | null;
}

/** The schema `Ports` of the REST API. */
export interface Ports {
  items: PortInfo[];
  /** null: no more pages */
  nextCursor: string | null;
}

/** A TCP port that listens in a workspace. */
export interface PortInfo {
  port: number;
  /** inside; a port of another address than loopback or all can't be reached */
  address: string;
}

/** The data of an event. New types may come: ignore what you don't know. */
export type CarrelEvent = WorkspaceEvent | WorkspaceDeletedEvent | WorkspaceWarningEvent | WorkspaceRepairedEvent | WorkspaceDiskEvent | WorkspaceArchiveEvent | WorkspaceSnapshotEvent | WorkspaceRollbackEvent | WorkspaceAppliedEvent | WorkspacePackagesEvent | SnapshotEvent | ExecStartedEvent | ExecEndedEvent | ExecChangedEvent | ApprovalEvent | WebhookEvent | TokenEvent | TemplateEvent | CaseEvent | CellEvent | AgentEvent | TaskEvent | TaskPushFailedEvent | ToolEvent | DeploymentEvent | EnvironmentProgressEvent | MissedEvent;

/** A workspace has changed. warm: its sandbox is ready; cold: its sandbox has ended. */
export interface WorkspaceEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.created" | "workspace.ready" | "workspace.updated" | "workspace.warm" | "workspace.cold" | "workspace.suspended" | "workspace.resumed" | "workspace.failed" | "workspace.expired" | "workspace.creating" | "workspace.deleting";
  /** of workspace.failed, or why a removal was given up */
  error?: string;
}

/** The schema `WorkspaceDeletedEvent` of the REST API. */
export interface WorkspaceDeletedEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.deleted";
  /** why it was removed: a client asked, or its time to live is over */
  reason: string;
}

/** The schema `WorkspaceWarningEvent` of the REST API. */
export interface WorkspaceWarningEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.warning";
  warning: string;
}

/** The schema `WorkspaceRepairedEvent` of the REST API. */
export interface WorkspaceRepairedEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.repaired";
  /** what was repaired */
  done: string;
}

/** A workspace has nearly reached its disk limit. */
export interface WorkspaceDiskEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.disk_warning";
  diskUsageBytes: number;
  diskLimitBytes: number;
}

/** A workspace was archived, or made of an archive. */
export interface WorkspaceArchiveEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.archived" | "workspace.restored";
  /** its name */
  archive: string;
  /** of workspace.archived */
  sizeBytes?: number;
}

/** The schema `WorkspaceSnapshotEvent` of the REST API. */
export interface WorkspaceSnapshotEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.snapshot";
  /** id of the new snapshot */
  snapshot: string;
  version: number;
  tag?: string;
}

/** The schema `WorkspaceRollbackEvent` of the REST API. */
export interface WorkspaceRollbackEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.rollback";
  /** id of the snapshot whose state it has now */
  snapshot: string;
  /** id of the snapshot of the state that it left */
  kept?: string;
}

/** A workspace has got changes of another one. */
export interface WorkspaceAppliedEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.applied";
  /** id of the other one */
  from: string;
  /** how many */
  changes: number;
}

/** The schema `WorkspacePackagesEvent` of the REST API. */
export interface WorkspacePackagesEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "workspace.installed" | "workspace.uninstalled";
  /** the new environment of the workspace */
  environment: string;
}

/** A snapshot was sent to the blob store, or fetched. */
export interface SnapshotEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "snapshot.pushed" | "snapshot.pulled";
  /** its id */
  snapshot: string;
  /** of snapshot.pushed */
  sentBytes?: number;
}

/** A background exec runs. */
export interface ExecStartedEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "exec.started";
  /** its id */
  exec: string;
}

/** The schema `ExecEndedEvent` of the REST API. */
export interface ExecEndedEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "exec.ended";
  /** its id */
  exec: string;
  reason: "exited" | "signaled" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "canceled" | "denied" | "daemon_lost";
  exitCode: number;
}

/** Files that an exec was judged by were changed before it ended: they are denied now. */
export interface ExecChangedEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "exec.changed";
  /** its id */
  exec: string;
  /** what is denied */
  reason: string;
}

/** The schema `ApprovalEvent` of the REST API. */
export interface ApprovalEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "approval.requested" | "approval.approved" | "approval.denied" | "approval.expired";
  /** its id */
  approval: string;
  /** id of the exec that waits for it */
  exec: string;
  /** the principal that answered; null: none has */
  by: string | null;
  /** of the answer, or why it has expired */
  note: string | null;
}

/** A webhook about an approval was given up. */
export interface WebhookEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "webhook.failed";
  /** its id */
  approval: string;
  error: string;
}

/** The schema `TokenEvent` of the REST API. */
export interface TokenEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "token.created" | "token.removed";
  /** its id */
  token: string;
}

/** The schema `TemplateEvent` of the REST API. */
export interface TemplateEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "template.added" | "template.removed" | "template.built";
}

/** An eval case; `workspace` is the one that is prepared. */
export interface CaseEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "case.created" | "case.preparing" | "case.ready" | "case.failed" | "case.removed";
  /** its id */
  case: string;
  /** of case.failed */
  error?: string;
}

/** A cell of an eval case has a new state. */
export interface CellEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "cell.waiting" | "cell.harness" | "cell.grading" | "cell.passed" | "cell.failed" | "cell.canceled";
  /** its id */
  cell: string;
  /** id of its case */
  case: string;
  /** which run of the case it is */
  repeat: number;
  /** why it hasn't passed */
  reason?: string;
}

/** The schema `AgentEvent` of the REST API. */
export interface AgentEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "agent.added" | "agent.removed";
}

/** A task of an A2A agent, whose name is `name`. */
export interface TaskEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "task.state";
  /** its id */
  task: string;
  /** its context id */
  context: string;
  /** submitted, working, input-required, completed, failed, canceled, rejected */
  state: string;
}

/** A push notification of a task was given up; the next is told when one was taken again. */
export interface TaskPushFailedEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "task.push_failed";
  /** its id */
  task: string;
  /** its context id */
  context: string;
  /** id of the push notification config */
  config: string;
  /** of its URL */
  host: string;
  error: string;
}

/** A version of a tool is in another state. */
export interface ToolEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "tool.state";
  /** id of the version */
  tool: string;
  version: number;
  state: "dormant" | "creating" | "installing" | "testing" | "active" | "cleanup";
  /** why it is dormant, else empty */
  error: string;
}

/** The status of a deployment has changed. */
export interface DeploymentEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "deployment.status";
  /** its id */
  deployment: string;
  /** downloading, building_env, installing_deps, starting, healthy, unhealthy, failed or stopped */
  status: string;
  version: string;
  revision: number;
  /** why, or empty */
  error: string;
}

/** An environment is being built for a workspace. */
export interface EnvironmentProgressEvent {
  /** counts up, also across restarts of the daemon */
  id: number;
  time: string;
  /** its id; empty: the event isn't about one */
  workspace: string;
  /** of the workspace, template, token, case or tool */
  name: string | null;
  /** the name of the event */
  type: "environment.progress";
  /** resolving, installing_deps, … */
  stage: string;
  packagesDone: number;
  /** 0: not known yet */
  packages: number;
  /** that were downloaded */
  bytes: number;
  /** of the request that waits */
  requestId: string;
}

/** Events that are not kept any more: the client was away, or too slow. */
export interface MissedEvent {
  /** the name of the event */
  type: "missed";
  /** the first event that was missed */
  from: number;
  /** the last one */
  to: number;
}

/** A line of the audit log. */
export interface AuditLine {
  /** counts up without gaps */
  seq: number;
  time: string;
  /** such as exec.start, exec.end, file.write, policy.refused */
  type: string;
  /** who asked: `uid 1000`, `token ID`, `system` */
  principal: string;
  /** its id */
  workspace: string | null;
  workspaceName: string | null;
  requestId: string | null;
  /** how the request came in: rest, cli (carrel), core */
  door: string;
  /** members of that type */
  data: Record<string, unknown>;
  /** the hash of the line before */
  prev: string;
  /** of this line and prev */
  hash: string;
}

/** RFC 9457. */
export interface Problem {
  /** about:blank: the code says more */
  type: string;
  /** of the status */
  title: string;
  /** as in the head of the response */
  status: number;
  /** what went wrong; stable */
  code: "invalid" | "not_found" | "conflict" | "denied" | "limit" | "disk_full" | "unavailable" | "corrupt" | "failed" | "command_not_found" | "not_executable" | "canceled" | "unauthenticated" | "approval_required";
  /** what failed, on which object, and why: for people */
  detail: string;
  /** how to correct it: often a route */
  hint: string | null;
  /** as in the logs of the daemon */
  requestId: string;
  /** of a command that wasn't started: 126 */
  exitCode?: number;
  /** of denied and approval_required: how the policy judged it */
  trail?: PolicyStep[];
  /** of changes that are conflicts */
  changes?: AppliedChange[];
}

/** What each operation of the REST API takes and gives. */
export interface Operations {
  /** Whether the daemon answers */
  healthz: { path: object; query: object; body: undefined; result: DaemonHealth };
  /** Whether the daemon accepts work */
  readyz: { path: object; query: object; body: undefined; result: DaemonHealth };
  /** Metrics in Prometheus' text format */
  metrics: { path: object; query: object; body: undefined; result: undefined };
  /** This document */
  openapi: { path: object; query: object; body: undefined; result: OpenApiDocument };
  /** List the environments that are built */
  listEnvironments: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Environments };
  /** List templates */
  listTemplates: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Templates };
  /** Add a template, or only check it */
  addTemplate: { path: object; query: object; body: TemplateAdded; result: Template };
  /** Show a template */
  getTemplate: { path: { id: string }; query: object; body: undefined; result: Template };
  /** Remove a template that was added */
  removeTemplate: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List shared trees */
  listTrees: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Trees };
  /** Create a shared tree */
  createTree: { path: object; query: object; body: TreeWanted; result: Tree };
  /** Remove a shared tree that no workspace uses */
  removeTree: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List approvals */
  listApprovals: { path: object; query: { state?: "pending" | "approved" | "denied" | "expired"; workspace?: string; limit?: number; cursor?: string }; body: undefined; result: Approvals };
  /** Show an approval */
  getApproval: { path: { id: string }; query: object; body: undefined; result: Approval };
  /** Approve or deny a command that waits */
  answerApproval: { path: { id: string }; query: object; body: ApprovalAnswer; result: Approval };
  /** List A2A agents */
  listAgents: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Agents };
  /** Add an A2A agent, or only check it */
  addAgent: { path: object; query: object; body: AgentAdded; result: Agent };
  /** Show an A2A agent */
  getAgent: { path: { id: string }; query: object; body: undefined; result: Agent };
  /** Remove an A2A agent and forget its tasks */
  removeAgent: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List access tokens */
  listTokens: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Tokens };
  /** Create an access token */
  createToken: { path: object; query: object; body: TokenWanted | undefined; result: Token };
  /** Remove an access token, which is refused from then on */
  removeToken: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** Run a file of Python or shell, and its tests, in a throw-away workspace */
  runCode: { path: object; query: object; body: CodeWanted; result: CodeResult };
  /** List eval cases */
  listCases: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Cases };
  /** Create an eval case, or only check it */
  createCase: { path: object; query: object; body: CaseWanted; result: Case };
  /** Show an eval case */
  getCase: { path: { id: string }; query: object; body: undefined; result: Case };
  /** Remove an eval case with its workspaces, and cancel its cells */
  removeCase: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List the cells of a case */
  listCells: { path: { id: string }; query: { limit?: number; cursor?: string }; body: undefined; result: Cells };
  /** Run a case once, in a cell of its own */
  startCell: { path: { id: string }; query: object; body: CellWanted | undefined; result: Cell };
  /** Show a cell */
  getCell: { path: { id: string }; query: object; body: undefined; result: Cell };
  /** List tools */
  listTools: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Tools };
  /** Test code and load it as a tool, or make a tool of a package */
  forgeTool: { path: object; query: object; body: ToolWanted; result: Tool };
  /** Write code and tests of a tool, by the operator's generator or as skeletons */
  generateTool: { path: object; query: object; body: ToolSpec; result: ToolSource };
  /** Show a tool, with its code and its tests */
  getTool: { path: { id: string }; query: { version?: number }; body: undefined; result: Tool };
  /** Remove a tool with all its versions */
  removeTool: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List the versions of a tool */
  listToolVersions: { path: { id: string }; query: { limit?: number; cursor?: string }; body: undefined; result: Tools };
  /** Call a tool */
  callTool: { path: { id: string }; query: object; body: ToolCall | undefined; result: ToolResult };
  /** Load another version of a tool */
  rollbackTool: { path: { id: string }; query: object; body: ToolRollback | undefined; result: Tool };
  /** Create a workspace */
  createWorkspace: { path: object; query: object; body: WorkspaceWanted | undefined; result: WorkspaceInfo };
  /** List workspaces */
  listWorkspaces: { path: object; query: { label?: string[]; state?: "creating" | "ready" | "running" | "suspended" | "failed" | "deleting"; limit?: number; cursor?: string }; body: undefined; result: Workspaces };
  /** Show a workspace */
  getWorkspace: { path: { id: string }; query: { measure?: boolean }; body: undefined; result: WorkspaceInfo };
  /** Change labels, variables, limits and lifetimes */
  changeWorkspace: { path: { id: string }; query: object; body: WorkspaceChange; result: WorkspaceInfo };
  /** Remove a workspace and end its commands */
  removeWorkspace: { path: { id: string }; query: { archive?: boolean }; body: undefined; result: Archive };
  /** List archived workspaces */
  listArchives: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Archives };
  /** Remove an archive */
  removeArchive: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** Store an archive under a new name, to restore it */
  uploadArchive: { path: { id: string }; query: { sha256?: string }; body: undefined; result: undefined };
  /** Make a workspace of an archive */
  restoreArchive: { path: { id: string }; query: object; body: RestoreWanted | undefined; result: WorkspaceInfo };
  /** List exported environments of the blob store */
  listExports: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Exports };
  /** Fetch an exported environment */
  getExport: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** Store an exported environment, or replace the one of that name */
  putExport: { path: { id: string }; query: { sha256?: string }; body: undefined; result: undefined };
  /** Remove an exported environment */
  removeExport: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List agent packages of the blob store */
  listAgentPackages: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: AgentPackages };
  /** Fetch an agent package */
  getAgentPackage: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** Store an agent package, or replace the one of that name */
  putAgentPackage: { path: { id: string }; query: { sha256?: string }; body: undefined; result: undefined };
  /** Remove an agent package */
  removeAgentPackage: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List deployments */
  listDeployments: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Deployments };
  /** Deploy an agent package, or replace what has that name */
  createDeployment: { path: object; query: object; body: DeploymentWanted; result: Deployment };
  /** Show a deployment */
  getDeployment: { path: { id: string }; query: object; body: undefined; result: Deployment };
  /** End a deployment and remove all of it */
  removeDeployment: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** Roll the live revision out again, without a failed request */
  restartDeployment: { path: { id: string }; query: object; body: undefined; result: Deployment };
  /** Roll the revision before the live one out again */
  rollbackDeployment: { path: { id: string }; query: object; body: undefined; result: Deployment };
  /** Show what the surfaces write */
  getDeploymentLogs: { path: { id: string }; query: { surface?: string }; body: undefined; result: undefined };
  /** Forward a request to the REST surface */
  forwardRestGet: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the REST surface */
  forwardRestPost: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the REST surface */
  forwardRestPut: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the REST surface */
  forwardRestPatch: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the REST surface */
  forwardRestDelete: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the A2A surface */
  forwardA2aGet: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the A2A surface */
  forwardA2aPost: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the A2A surface */
  forwardA2aPut: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the A2A surface */
  forwardA2aPatch: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the A2A surface */
  forwardA2aDelete: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the UI surface */
  forwardUiGet: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the UI surface */
  forwardUiPost: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the UI surface */
  forwardUiPut: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the UI surface */
  forwardUiPatch: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to the UI surface */
  forwardUiDelete: { path: { id: string; path: string }; query: object; body: undefined; result: undefined };
  /** End the processes of a workspace and keep its files */
  suspendWorkspace: { path: { id: string }; query: object; body: Suspend | undefined; result: WorkspaceInfo };
  /** Start the sandbox of a workspace, as the next command would */
  resumeWorkspace: { path: { id: string }; query: object; body: undefined; result: WorkspaceInfo };
  /** Check a workspace */
  checkWorkspace: { path: { id: string }; query: { deep?: boolean }; body: undefined; result: WorkspaceHealth };
  /** Check the isolation of a workspace's sandbox */
  verifyIsolation: { path: { id: string }; query: object; body: undefined; result: IsolationVerdict };
  /** Repair what a check finds */
  repairWorkspace: { path: { id: string }; query: { deep?: boolean }; body: undefined; result: WorkspaceRepair };
  /** Keep the present state of a workspace */
  createSnapshot: { path: { id: string }; query: object; body: SnapshotWanted | undefined; result: Snapshot };
  /** List the snapshots of a workspace */
  listWorkspaceSnapshots: { path: { id: string }; query: { limit?: number; cursor?: string }; body: undefined; result: Snapshots };
  /** List snapshots */
  listSnapshots: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Snapshots };
  /** Fetch a snapshot from the blob store */
  pullSnapshot: { path: object; query: object; body: PullWanted; result: Snapshot };
  /** Show a snapshot */
  getSnapshot: { path: { id: string }; query: object; body: undefined; result: Snapshot };
  /** Remove a snapshot */
  removeSnapshot: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** Compare the layers of a snapshot with their content ids */
  verifySnapshot: { path: { id: string }; query: object; body: undefined; result: SnapshotVerdict };
  /** Put a workspace back into the state of a snapshot */
  rollbackWorkspace: { path: { id: string }; query: object; body: RollbackWanted; result: WorkspaceInfo };
  /** Send a snapshot of a workspace to the blob store */
  pushSnapshot: { path: { id: string }; query: object; body: PushWanted; result: Push };
  /** Create workspaces with the state of another one */
  forkWorkspace: { path: { id: string }; query: object; body: ForkWanted | undefined; result: Workspaces };
  /** Show what a workspace uses */
  workspaceMetrics: { path: { id: string }; query: object; body: undefined; result: WorkspaceMetrics };
  /** List what workspaces use */
  listMetrics: { path: object; query: { label?: string[]; state?: "creating" | "ready" | "running" | "suspended" | "failed" | "deleting"; limit?: number; cursor?: string }; body: undefined; result: Metrics };
  /** List the Python and Node packages that a command in the workspace finds */
  listPackages: { path: { id: string }; query: object; body: undefined; result: Packages };
  /** Install Python or Node packages, also while commands run */
  installPackages: { path: { id: string }; query: object; body: PackagesWanted; result: PackagesChanged };
  /** Uninstall Python or Node packages */
  uninstallPackages: { path: { id: string }; query: object; body: PackagesWanted; result: PackagesChanged };
  /** Run a command */
  exec: { path: { id: string }; query: object; body: ExecWanted; result: ResultInfo | ExecInfo | ApprovalRequired };
  /** Run a command interactively, on a WebSocket */
  execSocket: { path: { id: string }; query: object; body: undefined; result: undefined };
  /** List the execs of a workspace */
  listExecs: { path: { id: string }; query: { limit?: number; cursor?: string }; body: undefined; result: Execs };
  /** List execs */
  listAllExecs: { path: object; query: { limit?: number; cursor?: string }; body: undefined; result: Execs };
  /** Show an exec, or wait for its end */
  getExec: { path: { id: string }; query: { wait?: boolean }; body: undefined; result: ExecInfo };
  /** Read the output of a background exec */
  getOutput: { path: { id: string }; query: { offset?: number; stream?: "stdout" | "stderr"; follow?: boolean }; body: undefined; result: undefined };
  /** Attach to a background exec, on a WebSocket */
  attachExec: { path: { id: string }; query: { offset?: number; stderrOffset?: number }; body: undefined; result: undefined };
  /** Send a signal to an exec */
  signalExec: { path: { id: string }; query: object; body: SignalWanted; result: undefined };
  /** Write to the stdin of an exec */
  writeStdin: { path: { id: string }; query: { eof?: boolean }; body: undefined; result: undefined };
  /** Change the terminal size of an exec */
  resizeTerminal: { path: { id: string }; query: object; body: TerminalSize; result: undefined };
  /** Read a file, list a directory, or show file information */
  readFile: { path: { id: string; path: string }; query: { list?: boolean; stat?: boolean; limit?: number; cursor?: string }; body: undefined; result: FileAnswer };
  /** Read a file, list a directory, or show file information */
  readFileHead: { path: { id: string; path: string }; query: { list?: boolean; stat?: boolean; limit?: number; cursor?: string }; body: undefined; result: FileAnswer };
  /** Write a file (atomically), make a directory, or move */
  writeFile: { path: { id: string; path: string }; query: { mkdir?: boolean; move?: string; mode?: string }; body: undefined; result: FileInfo };
  /** Remove a file or a directory */
  removeFile: { path: { id: string; path: string }; query: { recursive?: boolean }; body: undefined; result: undefined };
  /** Pack files as one archive */
  packTree: { path: { id: string }; query: { path?: string; format?: "tar" | "tar.zst" }; body: undefined; result: undefined };
  /** Unpack a tar, tar.gz, tar.zst or zip archive into a workspace */
  unpackTree: { path: { id: string }; query: { path?: string }; body: undefined; result: undefined };
  /** List what changed since the last snapshot, or another one, or all files */
  diffWorkspace: { path: { id: string }; query: { patch?: boolean; all?: boolean; path?: string[]; snapshot?: string }; body: undefined; result: Changes };
  /** Pack what changed since the last snapshot, or another one, or all files */
  packChanges: { path: { id: string }; query: { path?: string[]; snapshot?: string }; body: undefined; result: undefined };
  /** Apply changes of a workspace to another one: all of them, or none */
  applyChanges: { path: { id: string }; query: object; body: ApplyWanted; result: Applied };
  /** List the TCP ports that listen in a workspace */
  listPorts: { path: { id: string }; query: { limit?: number; cursor?: string }; body: undefined; result: Ports };
  /** Forward a request to a server in a workspace */
  forwardPortGet: { path: { id: string; port: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to a server in a workspace */
  forwardPortPost: { path: { id: string; port: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to a server in a workspace */
  forwardPortPut: { path: { id: string; port: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to a server in a workspace */
  forwardPortPatch: { path: { id: string; port: string; path: string }; query: object; body: undefined; result: undefined };
  /** Forward a request to a server in a workspace */
  forwardPortDelete: { path: { id: string; port: string; path: string }; query: object; body: undefined; result: undefined };
  /** Follow events of a workspace */
  workspaceEvents: { path: { id: string }; query: { after?: number }; body: undefined; result: undefined };
  /** Follow events */
  events: { path: object; query: { workspace?: string; after?: number }; body: undefined; result: undefined };
  /** Read the audit log */
  audit: { path: object; query: { since?: string; until?: string; workspace?: string; type?: string; follow?: boolean }; body: undefined; result: undefined };
}

/** A row of {@link operations}. @internal */
export interface OperationRow {
  method: string;
  path: string;
  keyed?: boolean;
  body?: string;
  results?: Record<string, string>;
}

/** Method and path of each operation. @internal */
export const operations: Record<keyof Operations, OperationRow> = {
  healthz: {"method":"GET","path":"/healthz","results":{"200":"Health"}},
  readyz: {"method":"GET","path":"/readyz","results":{"200":"Health"}},
  metrics: {"method":"GET","path":"/metrics"},
  openapi: {"method":"GET","path":"/openapi.json","results":{"200":"Document"}},
  listEnvironments: {"method":"GET","path":"/v1/environments","results":{"200":"Environments"}},
  listTemplates: {"method":"GET","path":"/v1/templates","results":{"200":"Templates"}},
  addTemplate: {"method":"POST","path":"/v1/templates","body":"TemplateAdded","results":{"200":"Template","201":"Template"}},
  getTemplate: {"method":"GET","path":"/v1/templates/{id}","results":{"200":"Template"}},
  removeTemplate: {"method":"DELETE","path":"/v1/templates/{id}"},
  listTrees: {"method":"GET","path":"/v1/trees","results":{"200":"Trees"}},
  createTree: {"method":"POST","path":"/v1/trees","body":"TreeWanted","results":{"201":"Tree"}},
  removeTree: {"method":"DELETE","path":"/v1/trees/{id}"},
  listApprovals: {"method":"GET","path":"/v1/approvals","results":{"200":"Approvals"}},
  getApproval: {"method":"GET","path":"/v1/approvals/{id}","results":{"200":"Approval"}},
  answerApproval: {"method":"POST","path":"/v1/approvals/{id}","body":"ApprovalAnswer","results":{"200":"Approval"}},
  listAgents: {"method":"GET","path":"/v1/agents","results":{"200":"Agents"}},
  addAgent: {"method":"POST","path":"/v1/agents","body":"AgentAdded","results":{"200":"Agent","201":"Agent"}},
  getAgent: {"method":"GET","path":"/v1/agents/{id}","results":{"200":"Agent"}},
  removeAgent: {"method":"DELETE","path":"/v1/agents/{id}"},
  listTokens: {"method":"GET","path":"/v1/tokens","results":{"200":"Tokens"}},
  createToken: {"method":"POST","path":"/v1/tokens","body":"TokenWanted","results":{"201":"Token"}},
  removeToken: {"method":"DELETE","path":"/v1/tokens/{id}"},
  runCode: {"method":"POST","path":"/v1/code","body":"CodeWanted","results":{"200":"CodeResult"}},
  listCases: {"method":"GET","path":"/v1/cases","results":{"200":"Cases"}},
  createCase: {"method":"POST","path":"/v1/cases","keyed":true,"body":"CaseWanted","results":{"200":"Case","201":"Case"}},
  getCase: {"method":"GET","path":"/v1/cases/{id}","results":{"200":"Case"}},
  removeCase: {"method":"DELETE","path":"/v1/cases/{id}"},
  listCells: {"method":"GET","path":"/v1/cases/{id}/cells","results":{"200":"Cells"}},
  startCell: {"method":"POST","path":"/v1/cases/{id}/cells","keyed":true,"body":"CellWanted","results":{"201":"Cell"}},
  getCell: {"method":"GET","path":"/v1/cells/{id}","results":{"200":"Cell"}},
  listTools: {"method":"GET","path":"/v1/tools","results":{"200":"Tools"}},
  forgeTool: {"method":"POST","path":"/v1/tools","body":"ToolWanted","results":{"201":"Tool"}},
  generateTool: {"method":"POST","path":"/v1/tool-sources","body":"ToolSpec","results":{"200":"ToolSource"}},
  getTool: {"method":"GET","path":"/v1/tools/{id}","results":{"200":"Tool"}},
  removeTool: {"method":"DELETE","path":"/v1/tools/{id}"},
  listToolVersions: {"method":"GET","path":"/v1/tools/{id}/versions","results":{"200":"Tools"}},
  callTool: {"method":"POST","path":"/v1/tools/{id}/call","body":"ToolCall","results":{"200":"ToolResult"}},
  rollbackTool: {"method":"POST","path":"/v1/tools/{id}/rollback","body":"ToolRollback","results":{"200":"Tool"}},
  createWorkspace: {"method":"POST","path":"/v1/workspaces","keyed":true,"body":"WorkspaceWanted","results":{"201":"Workspace"}},
  listWorkspaces: {"method":"GET","path":"/v1/workspaces","results":{"200":"Workspaces"}},
  getWorkspace: {"method":"GET","path":"/v1/workspaces/{id}","results":{"200":"Workspace"}},
  changeWorkspace: {"method":"PATCH","path":"/v1/workspaces/{id}","body":"WorkspaceChange","results":{"200":"Workspace"}},
  removeWorkspace: {"method":"DELETE","path":"/v1/workspaces/{id}","results":{"200":"Archive"}},
  listArchives: {"method":"GET","path":"/v1/archives","results":{"200":"Archives"}},
  removeArchive: {"method":"DELETE","path":"/v1/archives/{id}"},
  uploadArchive: {"method":"PUT","path":"/v1/archives/{id}"},
  restoreArchive: {"method":"POST","path":"/v1/archives/{id}/restore","body":"RestoreWanted","results":{"201":"Workspace"}},
  listExports: {"method":"GET","path":"/v1/exports","results":{"200":"Exports"}},
  getExport: {"method":"GET","path":"/v1/exports/{id}"},
  putExport: {"method":"PUT","path":"/v1/exports/{id}"},
  removeExport: {"method":"DELETE","path":"/v1/exports/{id}"},
  listAgentPackages: {"method":"GET","path":"/v1/packages","results":{"200":"AgentPackages"}},
  getAgentPackage: {"method":"GET","path":"/v1/packages/{id}"},
  putAgentPackage: {"method":"PUT","path":"/v1/packages/{id}"},
  removeAgentPackage: {"method":"DELETE","path":"/v1/packages/{id}"},
  listDeployments: {"method":"GET","path":"/v1/deployments","results":{"200":"Deployments"}},
  createDeployment: {"method":"POST","path":"/v1/deployments","body":"DeploymentWanted","results":{"200":"Deployment","201":"Deployment"}},
  getDeployment: {"method":"GET","path":"/v1/deployments/{id}","results":{"200":"Deployment"}},
  removeDeployment: {"method":"DELETE","path":"/v1/deployments/{id}"},
  restartDeployment: {"method":"POST","path":"/v1/deployments/{id}/restart","results":{"200":"Deployment"}},
  rollbackDeployment: {"method":"POST","path":"/v1/deployments/{id}/rollback","results":{"200":"Deployment"}},
  getDeploymentLogs: {"method":"GET","path":"/v1/deployments/{id}/logs"},
  forwardRestGet: {"method":"GET","path":"/v1/deployments/{id}/rest/{path}"},
  forwardRestPost: {"method":"POST","path":"/v1/deployments/{id}/rest/{path}"},
  forwardRestPut: {"method":"PUT","path":"/v1/deployments/{id}/rest/{path}"},
  forwardRestPatch: {"method":"PATCH","path":"/v1/deployments/{id}/rest/{path}"},
  forwardRestDelete: {"method":"DELETE","path":"/v1/deployments/{id}/rest/{path}"},
  forwardA2aGet: {"method":"GET","path":"/v1/deployments/{id}/a2a/{path}"},
  forwardA2aPost: {"method":"POST","path":"/v1/deployments/{id}/a2a/{path}"},
  forwardA2aPut: {"method":"PUT","path":"/v1/deployments/{id}/a2a/{path}"},
  forwardA2aPatch: {"method":"PATCH","path":"/v1/deployments/{id}/a2a/{path}"},
  forwardA2aDelete: {"method":"DELETE","path":"/v1/deployments/{id}/a2a/{path}"},
  forwardUiGet: {"method":"GET","path":"/v1/deployments/{id}/ui/{path}"},
  forwardUiPost: {"method":"POST","path":"/v1/deployments/{id}/ui/{path}"},
  forwardUiPut: {"method":"PUT","path":"/v1/deployments/{id}/ui/{path}"},
  forwardUiPatch: {"method":"PATCH","path":"/v1/deployments/{id}/ui/{path}"},
  forwardUiDelete: {"method":"DELETE","path":"/v1/deployments/{id}/ui/{path}"},
  suspendWorkspace: {"method":"POST","path":"/v1/workspaces/{id}/suspend","body":"Suspend","results":{"200":"Workspace"}},
  resumeWorkspace: {"method":"POST","path":"/v1/workspaces/{id}/resume","results":{"200":"Workspace"}},
  checkWorkspace: {"method":"GET","path":"/v1/workspaces/{id}/health","results":{"200":"WorkspaceHealth"}},
  verifyIsolation: {"method":"GET","path":"/v1/workspaces/{id}/verify","results":{"200":"IsolationVerdict"}},
  repairWorkspace: {"method":"POST","path":"/v1/workspaces/{id}/repair","results":{"200":"WorkspaceRepair"}},
  createSnapshot: {"method":"POST","path":"/v1/workspaces/{id}/snapshots","body":"SnapshotWanted","results":{"201":"Snapshot"}},
  listWorkspaceSnapshots: {"method":"GET","path":"/v1/workspaces/{id}/snapshots","results":{"200":"Snapshots"}},
  listSnapshots: {"method":"GET","path":"/v1/snapshots","results":{"200":"Snapshots"}},
  pullSnapshot: {"method":"POST","path":"/v1/snapshots","body":"PullWanted","results":{"201":"Snapshot"}},
  getSnapshot: {"method":"GET","path":"/v1/snapshots/{id}","results":{"200":"Snapshot"}},
  removeSnapshot: {"method":"DELETE","path":"/v1/snapshots/{id}"},
  verifySnapshot: {"method":"POST","path":"/v1/snapshots/{id}/verify","results":{"200":"SnapshotVerdict"}},
  rollbackWorkspace: {"method":"POST","path":"/v1/workspaces/{id}/rollback","body":"RollbackWanted","results":{"200":"Workspace"}},
  pushSnapshot: {"method":"POST","path":"/v1/workspaces/{id}/push","body":"PushWanted","results":{"200":"Push"}},
  forkWorkspace: {"method":"POST","path":"/v1/workspaces/{id}/fork","body":"ForkWanted","results":{"201":"Workspaces"}},
  workspaceMetrics: {"method":"GET","path":"/v1/workspaces/{id}/metrics","results":{"200":"WorkspaceMetrics"}},
  listMetrics: {"method":"GET","path":"/v1/metrics","results":{"200":"Metrics"}},
  listPackages: {"method":"GET","path":"/v1/workspaces/{id}/packages","results":{"200":"Packages"}},
  installPackages: {"method":"POST","path":"/v1/workspaces/{id}/packages","body":"PackagesWanted","results":{"200":"PackagesChanged"}},
  uninstallPackages: {"method":"DELETE","path":"/v1/workspaces/{id}/packages","body":"PackagesWanted","results":{"200":"PackagesChanged"}},
  exec: {"method":"POST","path":"/v1/workspaces/{id}/exec","keyed":true,"body":"ExecWanted","results":{"200":"Result","201":"Exec","202":"ApprovalRequired"}},
  execSocket: {"method":"GET","path":"/v1/workspaces/{id}/exec"},
  listExecs: {"method":"GET","path":"/v1/workspaces/{id}/execs","results":{"200":"Execs"}},
  listAllExecs: {"method":"GET","path":"/v1/execs","results":{"200":"Execs"}},
  getExec: {"method":"GET","path":"/v1/execs/{id}","results":{"200":"Exec"}},
  getOutput: {"method":"GET","path":"/v1/execs/{id}/output"},
  attachExec: {"method":"GET","path":"/v1/execs/{id}/attach"},
  signalExec: {"method":"POST","path":"/v1/execs/{id}/signal","body":"Signal"},
  writeStdin: {"method":"POST","path":"/v1/execs/{id}/stdin"},
  resizeTerminal: {"method":"POST","path":"/v1/execs/{id}/resize","body":"Size"},
  readFile: {"method":"GET","path":"/v1/workspaces/{id}/files/{path}","results":{"200":"FileAnswer"}},
  readFileHead: {"method":"HEAD","path":"/v1/workspaces/{id}/files/{path}","results":{"200":"FileAnswer"}},
  writeFile: {"method":"PUT","path":"/v1/workspaces/{id}/files/{path}","results":{"200":"FileInfo","201":"FileInfo"}},
  removeFile: {"method":"DELETE","path":"/v1/workspaces/{id}/files/{path}"},
  packTree: {"method":"GET","path":"/v1/workspaces/{id}/archive"},
  unpackTree: {"method":"PUT","path":"/v1/workspaces/{id}/archive"},
  diffWorkspace: {"method":"GET","path":"/v1/workspaces/{id}/diff","results":{"200":"Changes"}},
  packChanges: {"method":"GET","path":"/v1/workspaces/{id}/changes"},
  applyChanges: {"method":"POST","path":"/v1/workspaces/{id}/apply","body":"ApplyWanted","results":{"200":"Applied"}},
  listPorts: {"method":"GET","path":"/v1/workspaces/{id}/ports","results":{"200":"Ports"}},
  forwardPortGet: {"method":"GET","path":"/v1/workspaces/{id}/ports/{port}/{path}"},
  forwardPortPost: {"method":"POST","path":"/v1/workspaces/{id}/ports/{port}/{path}"},
  forwardPortPut: {"method":"PUT","path":"/v1/workspaces/{id}/ports/{port}/{path}"},
  forwardPortPatch: {"method":"PATCH","path":"/v1/workspaces/{id}/ports/{port}/{path}"},
  forwardPortDelete: {"method":"DELETE","path":"/v1/workspaces/{id}/ports/{port}/{path}"},
  workspaceEvents: {"method":"GET","path":"/v1/workspaces/{id}/events"},
  events: {"method":"GET","path":"/v1/events"},
  audit: {"method":"GET","path":"/v1/audit"},
};

/** By schema and name on the wire: the name here, and the schema of the value. @internal */
export const shapes: Record<string, Record<string, [string, string?]>> = {
  Environments: {"items":["items","Environment"],"next_cursor":["nextCursor"]},
  Environment: {"package_id":["packageId"],"created_at":["createdAt"],"last_used_at":["lastUsedAt"],"use_count":["useCount"],"size_bytes":["sizeBytes"],"python_version":["pythonVersion"],"node_version":["nodeVersion"],"installed_packages":["installedPackages"],"in_use":["inUse"]},
  Templates: {"items":["items","Template"],"next_cursor":["nextCursor"]},
  Template: {"python":["python","TemplatePython"],"nodejs":["nodejs","TemplateNode"],"system":["system","TemplateSystem"],"security":["security","TemplateSecurity"],"limits":["limits","Limits"],"network":["network","TemplateNetwork"],"ttl_ms":["ttlMs"],"idle_timeout_ms":["idleTimeoutMs"]},
  TemplateSecurity: {"network_enabled":["networkEnabled"],"filesystem_readonly":["filesystemReadonly"],"filesystem_writable":["filesystemWritable"]},
  Limits: {"memory_bytes":["memoryBytes"],"disk_bytes":["diskBytes"],"tmp_bytes":["tmpBytes"],"cpu_time_ms":["cpuTimeMs"],"timeout_ms":["timeoutMs"],"output_bytes":["outputBytes"]},
  TemplateAdded: {"template":["template","TemplateWanted"]},
  TemplateWanted: {"python":["python","TemplatePythonWanted"],"nodejs":["nodejs","TemplateNodeWanted"],"system":["system","TemplateSystemWanted"],"security":["security","TemplateSecurityWanted"],"limits":["limits","LimitsWanted"],"network":["network","TemplateNetworkWanted"],"ttl_ms":["ttlMs"],"idle_timeout":["idleTimeout"],"idle_timeout_ms":["idleTimeoutMs"]},
  TemplateSecurityWanted: {"network_enabled":["networkEnabled"],"filesystem_readonly":["filesystemReadonly"],"filesystem_writable":["filesystemWritable"]},
  LimitsWanted: {"memory_bytes":["memoryBytes"],"disk_bytes":["diskBytes"],"tmp_bytes":["tmpBytes"],"cpu_time":["cpuTime"],"cpu_time_ms":["cpuTimeMs"],"timeout_ms":["timeoutMs"],"output_bytes":["outputBytes"]},
  Trees: {"items":["items","Tree"],"next_cursor":["nextCursor"]},
  Approvals: {"items":["items","Approval"],"next_cursor":["nextCursor"]},
  Approval: {"workspace_name":["workspaceName"],"open_stdin":["openStdin"],"trail":["trail","PolicyStep"],"trail_truncated":["trailTruncated"],"requested_by":["requestedBy"],"created_at":["createdAt"],"expires_at":["expiresAt"],"answered_at":["answeredAt"],"answered_by":["answeredBy"],"suggested_rules":["suggestedRules"],"always_refused":["alwaysRefused"]},
  Agents: {"items":["items","Agent"],"next_cursor":["nextCursor"]},
  Agent: {"created_at":["createdAt"],"skills":["skills","AgentSkill"],"extended":["extended","AgentExtended"],"limits":["limits","Limits"],"timeout_ms":["timeoutMs"],"ttl_ms":["ttlMs"],"workspace_without_context":["workspaceWithoutContext"],"max_contexts":["maxContexts"],"max_tasks":["maxTasks"]},
  AgentExtended: {"skills":["skills","AgentSkill"]},
  Tokens: {"items":["items","Token"],"next_cursor":["nextCursor"]},
  Token: {"workspace_name":["workspaceName"],"created_by":["createdBy"],"created_at":["createdAt"],"expires_at":["expiresAt"],"last_used_at":["lastUsedAt"]},
  TokenWanted: {"ttl_ms":["ttlMs"]},
  CodeWanted: {"tests_file":["testsFile"],"stdin":["stdin","CodeWanted.stdin"],"limits":["limits","LimitsWanted"],"network":["network","NetworkWanted"],"timeout_ms":["timeoutMs"]},
  CodeResult: {"exit_code":["exitCode"],"duration_ms":["durationMs"],"cpu_ms":["cpuMs"],"max_rss_bytes":["maxRssBytes"],"tests":["tests","CodeTests"]},
  CodeTests: {"result":["result","Result"]},
  Result: {"exit_code":["exitCode"],"duration_ms":["durationMs"],"cpu_ms":["cpuMs"],"max_rss_bytes":["maxRssBytes"]},
  Cases: {"items":["items","Case"],"next_cursor":["nextCursor"]},
  Case: {"ttl_ms":["ttlMs"],"steps":["steps","CaseStep"],"created_at":["createdAt"],"last_used_at":["lastUsedAt"]},
  CaseStep: {"exit_code":["exitCode"],"duration_ms":["durationMs"]},
  CaseWanted: {"ttl_ms":["ttlMs"]},
  Cells: {"items":["items","Cell"],"next_cursor":["nextCursor"]},
  Cell: {"case_name":["caseName"],"duration_ms":["durationMs"],"steps":["steps","CaseStep"],"diff_truncated":["diffTruncated"],"created_at":["createdAt"],"started_at":["startedAt"],"ended_at":["endedAt"]},
  Tools: {"items":["items","Tool"],"next_cursor":["nextCursor"]},
  Tool: {"forge_ms":["forgeMs"],"ttl_ms":["ttlMs"],"created_at":["createdAt"],"changed_at":["changedAt"],"expires_at":["expiresAt"],"network":["network","Network"]},
  Network: {"received_bytes":["receivedBytes"],"sent_bytes":["sentBytes"],"bounded_by":["boundedBy"]},
  ToolWanted: {"network":["network","NetworkWanted"],"limits":["limits","LimitsWanted"],"timeout_ms":["timeoutMs"],"ttl_ms":["ttlMs"]},
  ToolCall: {"timeout_ms":["timeoutMs"]},
  ToolResult: {"error":["error","ToolFailure"],"duration_ms":["durationMs"]},
  WorkspaceWanted: {"ttl_ms":["ttlMs"],"idle_timeout":["idleTimeout"],"idle_timeout_ms":["idleTimeoutMs"],"python":["python","Python"],"node":["node","Node"],"limits":["limits","LimitsWanted"],"network":["network","NetworkWanted"]},
  Python: {"torch_backend":["torchBackend"],"allow_build":["allowBuild"]},
  Node: {"package_json":["packageJson"],"allow_scripts":["allowScripts"]},
  Workspace: {"created_at":["createdAt"],"last_used_at":["lastUsedAt"],"expires_at":["expiresAt"],"idle_timeout_ms":["idleTimeoutMs"],"node_environment":["nodeEnvironment"],"limits":["limits","Limits"],"network":["network","Network"],"disk_usage_bytes":["diskUsageBytes"],"disk_limit_mechanism":["diskLimitMechanism"],"layers_active":["layersActive"],"in_use":["inUse"],"template_settings":["templateSettings"],"template_sources":["templateSources"]},
  Workspaces: {"items":["items","Workspace"],"next_cursor":["nextCursor"]},
  WorkspaceChange: {"limits":["limits","LimitsWanted"],"network":["network","NetworkChange"],"ttl_ms":["ttlMs"],"idle_timeout":["idleTimeout"],"idle_timeout_ms":["idleTimeoutMs"]},
  Archive: {"created_at":["createdAt"],"size_bytes":["sizeBytes"]},
  Archives: {"items":["items","Archive"],"next_cursor":["nextCursor"]},
  Exports: {"items":["items","Export"],"next_cursor":["nextCursor"]},
  Export: {"created_at":["createdAt"],"size_bytes":["sizeBytes"]},
  AgentPackages: {"items":["items","Export"],"next_cursor":["nextCursor"]},
  Deployments: {"items":["items","Deployment"],"next_cursor":["nextCursor"]},
  Deployment: {"created_at":["createdAt"],"updated_at":["updatedAt"],"rollout":["rollout","DeploymentRollout"],"venv":["venv","DeploymentVenv"],"surfaces":["surfaces","Surface"]},
  DeploymentVenv: {"requirements_sha256":["requirementsSha256"],"created_at":["createdAt"],"python_version":["pythonVersion"],"installed_packages":["installedPackages"]},
  DeploymentWanted: {"network":["network","NetworkWanted"]},
  WorkspaceHealth: {"python_venv":["pythonVenv"],"python_deps_installed":["pythonDepsInstalled"],"node_modules":["nodeModules"],"node_deps_installed":["nodeDepsInstalled"],"disk_usage":["diskUsage"],"disk_limit":["diskLimit"],"disk_limit_mechanism":["diskLimitMechanism"],"node_environment":["nodeEnvironment"],"environment_layers":["environmentLayers"],"snapshot_layers":["snapshotLayers"],"layers_active":["layersActive"]},
  IsolationVerdict: {"inside_trusted":["insideTrusted"],"layers":["layers","IsolationCheck"]},
  IsolationCheck: {"seen_from":["seenFrom"]},
  WorkspaceRepair: {"health":["health","WorkspaceHealth"]},
  SnapshotWanted: {"when_busy":["whenBusy"],"timeout_ms":["timeoutMs"]},
  Snapshot: {"workspace_name":["workspaceName"],"created_at":["createdAt"],"size_bytes":["sizeBytes"],"node_environment":["nodeEnvironment"],"content_id":["contentId"]},
  Snapshots: {"items":["items","Snapshot"],"next_cursor":["nextCursor"]},
  SnapshotVerdict: {"layers":["layers","LayerVerdict"]},
  LayerVerdict: {"content_id":["contentId"]},
  RollbackWanted: {"when_busy":["whenBusy"],"timeout_ms":["timeoutMs"]},
  Push: {"sent_layers":["sentLayers"],"sent_bytes":["sentBytes"]},
  ForkWanted: {"when_busy":["whenBusy"],"timeout_ms":["timeoutMs"]},
  WorkspaceMetrics: {"measured_at":["measuredAt"],"cpu_ms":["cpuMs"],"cpu_percent":["cpuPercent"],"memory_bytes":["memoryBytes"],"memory_limit_bytes":["memoryLimitBytes"],"pids_limit":["pidsLimit"],"disk_usage_bytes":["diskUsageBytes"],"disk_limit_bytes":["diskLimitBytes"]},
  Metrics: {"items":["items","WorkspaceMetrics"],"next_cursor":["nextCursor"]},
  Packages: {"items":["items","Package"],"next_cursor":["nextCursor"]},
  PackagesChanged: {"installed":["installed","PackageVersion"],"removed":["removed","PackageVersion"]},
  ExecWanted: {"stdin":["stdin","ExecWanted.stdin"],"open_stdin":["openStdin"],"timeout_ms":["timeoutMs"],"limits":["limits","ExecLimits"]},
  ExecLimits: {"cpu_time":["cpuTime"],"cpu_time_ms":["cpuTimeMs"],"output_bytes":["outputBytes"]},
  ExecLearnedEvent: {"decision_with_rules":["decisionWithRules"],"trail":["trail","PolicyStep"]},
  ExecExitEvent: {"exit_code":["exitCode"],"duration_ms":["durationMs"],"cpu_ms":["cpuMs"],"max_rss_bytes":["maxRssBytes"]},
  ExecErrorEvent: {"exit_code":["exitCode"]},
  Exec: {"started_at":["startedAt"],"ended_at":["endedAt"],"exit_code":["exitCode"],"output_bytes":["outputBytes"],"output_dropped_bytes":["outputDroppedBytes"],"duration_ms":["durationMs"],"cpu_ms":["cpuMs"],"max_rss_bytes":["maxRssBytes"]},
  ApprovalRequired: {"request_id":["requestId"],"exit_code":["exitCode"],"approval":["approval","Approval"]},
  Execs: {"items":["items","Exec"],"next_cursor":["nextCursor"]},
  OutputExitEvent: {"started_at":["startedAt"],"ended_at":["endedAt"],"exit_code":["exitCode"],"output_bytes":["outputBytes"],"output_dropped_bytes":["outputDroppedBytes"],"duration_ms":["durationMs"],"cpu_ms":["cpuMs"],"max_rss_bytes":["maxRssBytes"]},
  Files: {"items":["items","FileInfo"],"next_cursor":["nextCursor"]},
  FileInfo: {"name_base64":["nameBase64"],"modified_at":["modifiedAt"]},
  Changes: {"items":["items","Change"],"next_cursor":["nextCursor"]},
  Change: {"size_before":["sizeBefore"],"size_after":["sizeAfter"],"mode_before":["modeBefore"],"mode_after":["modeAfter"]},
  ApplyWanted: {"dry_run":["dryRun"]},
  Applied: {"changes":["changes","AppliedChange"]},
  AppliedChange: {"path_base64":["pathBase64"]},
  Ports: {"items":["items","Port"],"next_cursor":["nextCursor"]},
  WorkspaceDiskEvent: {"disk_usage_bytes":["diskUsageBytes"],"disk_limit_bytes":["diskLimitBytes"]},
  WorkspaceArchiveEvent: {"size_bytes":["sizeBytes"]},
  SnapshotEvent: {"sent_bytes":["sentBytes"]},
  ExecEndedEvent: {"exit_code":["exitCode"]},
  EnvironmentProgressEvent: {"packages_done":["packagesDone"],"request_id":["requestId"]},
  AuditLine: {"workspace_name":["workspaceName"],"request_id":["requestId"]},
  Problem: {"request_id":["requestId"],"exit_code":["exitCode"],"trail":["trail","PolicyStep"],"changes":["changes","AppliedChange"]},
  ExecEvent: {"decision_with_rules":["decisionWithRules"],"trail":["trail","PolicyStep"],"exit_code":["exitCode"],"duration_ms":["durationMs"],"cpu_ms":["cpuMs"],"max_rss_bytes":["maxRssBytes"]},
  OutputEvent: {"started_at":["startedAt"],"ended_at":["endedAt"],"exit_code":["exitCode"],"output_bytes":["outputBytes"],"output_dropped_bytes":["outputDroppedBytes"],"duration_ms":["durationMs"],"cpu_ms":["cpuMs"],"max_rss_bytes":["maxRssBytes"]},
  FileAnswer: {"items":["items","FileInfo"],"next_cursor":["nextCursor"],"name_base64":["nameBase64"],"modified_at":["modifiedAt"]},
  Event: {"disk_usage_bytes":["diskUsageBytes"],"disk_limit_bytes":["diskLimitBytes"],"size_bytes":["sizeBytes"],"sent_bytes":["sentBytes"],"exit_code":["exitCode"],"packages_done":["packagesDone"],"request_id":["requestId"]},
};
