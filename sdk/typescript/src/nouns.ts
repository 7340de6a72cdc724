/* What a daemon has besides workspaces. */
import type { Bytes } from "./bytes.js";
import { duration, given, Process, type Duration } from "./commands.js";
import type {
  Agent,
  Approval,
  ApprovalAnswer,
  Archive,
  Case,
  CaseWanted,
  Cell,
  Deployment,
  DeploymentWanted,
  Environment,
  Export,
  Snapshot,
  SnapshotVerdict,
  Template,
  TemplateWanted,
  Token,
  TokenWanted,
  Tool,
  ToolResult,
  ToolSource,
  ToolSpec,
  ToolWanted,
  Tree,
} from "./generated.js";
import { fetchSurface, type PortRequest } from "./ports.js";
import type { CallOptions, Http } from "./http.js";
import { Listing } from "./listing.js";
import { Workspace } from "./workspace.js";

/** Commands of all workspaces. */
export class Execs {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All commands, newest first. */
  list(options: CallOptions = {}): Listing<Process> {
    return new Listing(async (cursor) => {
      const page = await this.http.call("listAllExecs", { query: given({ cursor }), signal: options.signal });
      return { ...page, items: page.items.map((info) => new Process(this.http, info)) };
    });
  }

  /** The command with that id. */
  async get(id: string, options: CallOptions = {}): Promise<Process> {
    return new Process(this.http, await this.http.call("getExec", { id, signal: options.signal }));
  }
}

/** Templates, of which workspaces are made. */
export class Templates {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All templates, by name. */
  list(options: CallOptions = {}): Listing<Template> {
    return new Listing((cursor) => this.http.call("listTemplates", { query: given({ cursor }), signal: options.signal }));
  }

  /** The template of that name. */
  get(name: string, options: CallOptions = {}): Promise<Template> {
    return this.http.call("getTemplate", { id: name, signal: options.signal });
  }

  /** Adds a template: the text of its YAML, or its values. With `check` it is only checked. */
  add(template: string | TemplateWanted, options: CallOptions & { check?: boolean } = {}): Promise<Template> {
    const { check, signal } = options;
    const body = { ...(typeof template === "string" ? { yaml: template } : { template }), ...given({ check }) };
    return this.http.call("addTemplate", { body, signal });
  }

  /** Removes a template that was added. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeTemplate", { id: name, signal: options.signal });
  }
}

/** A2A agents. Their tasks are A2A's: use a client of that protocol at `/a2a/NAME`. */
export class Agents {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All agents, by name. */
  list(options: CallOptions = {}): Listing<Agent> {
    return new Listing((cursor) => this.http.call("listAgents", { query: given({ cursor }), signal: options.signal }));
  }

  /** The agent of that name. */
  get(name: string, options: CallOptions = {}): Promise<Agent> {
    return this.http.call("getAgent", { id: name, signal: options.signal });
  }

  /** Adds an agent, or replaces the one of its name: the text of its YAML. With `check` it is only checked. */
  add(yaml: string, options: CallOptions & { check?: boolean } = {}): Promise<Agent> {
    const { check, signal } = options;
    return this.http.call("addAgent", { body: { yaml, ...given({ check }) }, signal });
  }

  /** Removes an agent, and forgets its tasks. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeAgent", { id: name, signal: options.signal });
  }
}

/** Snapshots of all workspaces. */
export class Snapshots {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All snapshots, newest first. */
  list(options: CallOptions = {}): Listing<Snapshot> {
    return new Listing((cursor) => this.http.call("listSnapshots", { query: given({ cursor }), signal: options.signal }));
  }

  /** The snapshot with that id. */
  get(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return this.http.call("getSnapshot", { id, signal: options.signal });
  }

  /** Fetches a snapshot that was pushed to the blob store: its id, tag or version. */
  pull(workspace: string, snapshot: string, options: CallOptions = {}): Promise<Snapshot> {
    return this.http.call("pullSnapshot", { body: { workspace, snapshot }, signal: options.signal });
  }

  /** Compares its layers with their content ids. */
  verify(id: string, options: CallOptions = {}): Promise<SnapshotVerdict> {
    return this.http.call("verifySnapshot", { id, signal: options.signal });
  }

  /** Removes a snapshot. */
  async remove(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeSnapshot", { id, signal: options.signal });
  }
}

/** Archived workspaces. */
export class Archives {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All archives, newest first. */
  list(options: CallOptions = {}): Listing<Archive> {
    return new Listing((cursor) => this.http.call("listArchives", { query: given({ cursor }), signal: options.signal }));
  }

  /** Makes a workspace of an archive, with another name if one is given. */
  async restore(archive: string, options: CallOptions & { name?: string } = {}): Promise<Workspace> {
    const { name, signal } = options;
    return new Workspace(this.http, await this.http.call("restoreArchive", { id: archive, body: given({ name }), signal }), true);
  }

  /** Stores an archive under a new name, to restore it. */
  async upload(archive: string, data: Bytes, options: CallOptions & { sha256?: string } = {}): Promise<void> {
    const { sha256, signal } = options;
    await (await this.http.open("uploadArchive", { id: archive, query: { sha256 }, data, signal })).bytes();
  }

  /** Removes an archive. */
  async remove(archive: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeArchive", { id: archive, signal: options.signal });
  }
}

/** Environments that are built. */
export class Environments {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All environments, by name. */
  list(options: CallOptions = {}): Listing<Environment> {
    return new Listing((cursor) => this.http.call("listEnvironments", { query: given({ cursor }), signal: options.signal }));
  }
}

/** Exported environments of the blob store. */
export class Exports {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All exports, by name. */
  list(options: CallOptions = {}): Listing<Export> {
    return new Listing((cursor) => this.http.call("listExports", { query: given({ cursor }), signal: options.signal }));
  }

  /** The bytes of an export, as `carrel env export` wrote them. */
  async *download(name: string, options: CallOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    yield* (await this.http.open("getExport", { id: name, signal: options.signal })).chunks();
  }

  /** Stores an exported environment, or replaces the one of that name. */
  async upload(name: string, data: Bytes, options: CallOptions & { sha256?: string } = {}): Promise<void> {
    const { sha256, signal } = options;
    await (await this.http.open("putExport", { id: name, query: { sha256 }, data, signal })).bytes();
  }

  /** Removes an export. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeExport", { id: name, signal: options.signal });
  }
}

/** Directories that workspaces share. */
export class Trees {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All shared trees, by name. */
  list(options: CallOptions = {}): Listing<Tree> {
    return new Listing((cursor) => this.http.call("listTrees", { query: given({ cursor }), signal: options.signal }));
  }

  /** Creates a shared tree; `attach` of a new workspace names it. */
  create(name: string, options: CallOptions = {}): Promise<Tree> {
    return this.http.call("createTree", { body: { name }, signal: options.signal });
  }

  /** Removes a shared tree that no workspace uses. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeTree", { id: name, signal: options.signal });
  }
}

/** What a new token is for. */
export interface TokenOptions extends Omit<TokenWanted, "ttl" | "ttlMs">, CallOptions {
  /** It expires after this time. Default: never. */
  ttl?: Duration | undefined;
}

/** Access tokens. */
export class Tokens {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All tokens, newest first, without their text. */
  list(options: CallOptions = {}): Listing<Token> {
    return new Listing((cursor) => this.http.call("listTokens", { query: given({ cursor }), signal: options.signal }));
  }

  /** Creates a token. Its `text`, which is shown only here, is what {@link CarrelOptions.token} takes. */
  create(options: TokenOptions = {}): Promise<Token> {
    const { ttl, signal, ...rest } = options;
    return this.http.call("createToken", { body: { ...rest, ...duration("ttl", ttl) }, signal });
  }

  /** Removes a token, which is refused from then on. */
  async remove(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeToken", { id, signal: options.signal });
  }
}

/** Agent packages of the blob store. */
export class Packages {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All packages, by name. */
  list(options: CallOptions = {}): Listing<Export> {
    return new Listing((cursor) => this.http.call("listAgentPackages", { query: given({ cursor }), signal: options.signal }));
  }

  /** The bytes of a package. */
  async *download(name: string, options: CallOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    yield* (await this.http.open("getAgentPackage", { id: name, signal: options.signal })).chunks();
  }

  /** Stores a package, or replaces the one of that name: `{agentAppId}@{version}`. */
  async upload(name: string, data: Bytes, options: CallOptions & { sha256?: string } = {}): Promise<void> {
    const { sha256, signal } = options;
    await (await this.http.open("putAgentPackage", { id: name, query: { sha256 }, data, signal })).bytes();
  }

  /** Removes a package. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeAgentPackage", { id: name, signal: options.signal });
  }
}

/** Agent packages that are served. */
export class Deployments {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All deployments, newest first. */
  list(options: CallOptions = {}): Listing<Deployment> {
    return new Listing((cursor) => this.http.call("listDeployments", { query: given({ cursor }), signal: options.signal }));
  }

  /** Rolls a package out; the events `deployment.status` tell how it goes. */
  create(wanted: DeploymentWanted, options: CallOptions = {}): Promise<Deployment> {
    return this.http.call("createDeployment", { body: wanted, signal: options.signal });
  }

  /** The deployment of that id or name. */
  get(name: string, options: CallOptions = {}): Promise<Deployment> {
    return this.http.call("getDeployment", { id: name, signal: options.signal });
  }

  /** Rolls the live revision out again. */
  restart(name: string, options: CallOptions = {}): Promise<Deployment> {
    return this.http.call("restartDeployment", { id: name, signal: options.signal });
  }

  /** Rolls the revision before the live one out again. */
  rollback(name: string, options: CallOptions = {}): Promise<Deployment> {
    return this.http.call("rollbackDeployment", { id: name, signal: options.signal });
  }

  /** Ends a deployment and removes all of it. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeDeployment", { id: name, signal: options.signal });
  }

  /** The end of what its surfaces have written. */
  async logs(name: string, options: CallOptions & { surface?: "rest" | "a2a" | "ui" } = {}): Promise<Uint8Array> {
    const { surface, signal } = options;
    return (await this.http.open("getDeploymentLogs", { id: name, query: given({ surface }), signal })).bytes();
  }

  /** One HTTP request to a surface; its answer, whatever its status. */
  fetch(name: string, surface: "rest" | "a2a" | "ui", target: string, request: PortRequest = {}): Promise<Response> {
    return fetchSurface(this.http, name, surface, target, request);
  }
}

/** Eval cases, and their cells: runs of a case in forks of one prepared state. */
export class Cases {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** All cases, newest first. */
  list(options: CallOptions = {}): Listing<Case> {
    return new Listing((cursor) => this.http.call("listCases", { query: given({ cursor }), signal: options.signal }));
  }

  /** Creates a case of the text of its file, or with `check` only reads it. Its `workspace` takes the source. */
  create(yaml: string, options: Omit<CaseWanted, "yaml"> & CallOptions = {}): Promise<Case> {
    const { signal, ...rest } = options;
    return this.http.call("createCase", { body: { yaml, ...rest }, signal });
  }

  /** The case with that id. */
  get(id: string, options: CallOptions = {}): Promise<Case> {
    return this.http.call("getCase", { id, signal: options.signal });
  }

  /** Cancels its cells, and removes it with its workspaces. */
  async remove(id: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeCase", { id, signal: options.signal });
  }

  /** Its cells, newest first, without their steps and diffs. */
  cells(id: string, options: CallOptions = {}): Listing<Cell> {
    return new Listing((cursor) => this.http.call("listCells", { id, query: given({ cursor }), signal: options.signal }));
  }

  /** Runs a case once; the events `cell.passed`, `cell.failed` and `cell.canceled` tell the end. */
  start(id: string, options: CallOptions & { repeat?: number } = {}): Promise<Cell> {
    const { signal, ...body } = options;
    return this.http.call("startCell", { id, body, signal });
  }

  /** A cell with its steps and its diff. */
  cell(id: string, options: CallOptions = {}): Promise<Cell> {
    return this.http.call("getCell", { id, signal: options.signal });
  }
}

/** Which approvals. */
export interface ApprovalFilter extends CallOptions {
  /** Only of this state. */
  state?: Approval["state"] | undefined;
  /** Only of this workspace. */
  workspace?: string | undefined;
}

/** Commands that wait for a reviewer. */
export class Approvals {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** Approvals, newest first. */
  list(filter: ApprovalFilter = {}): Listing<Approval> {
    const { signal, ...rest } = filter;
    return new Listing((cursor) => this.http.call("listApprovals", { query: given({ ...rest, cursor }), signal }));
  }

  /** The approval with that id. */
  get(id: string, options: CallOptions = {}): Promise<Approval> {
    return this.http.call("getApproval", { id, signal: options.signal });
  }

  /** Lets the command run; `always` also adds the suggested rules to the policy of the workspace. */
  approve(id: string, options: CallOptions & { always?: boolean; note?: string } = {}): Promise<Approval> {
    const { signal, ...rest } = options;
    return this.answer(id, { decision: "approve", ...given(rest) }, signal);
  }

  /** Refuses the command. */
  deny(id: string, options: CallOptions & { note?: string } = {}): Promise<Approval> {
    const { signal, ...rest } = options;
    return this.answer(id, { decision: "deny", ...given(rest) }, signal);
  }

  private answer(id: string, body: ApprovalAnswer, signal: AbortSignal | undefined): Promise<Approval> {
    return this.http.call("answerApproval", { id, body, signal });
  }
}

/** Tools: Python code that is tested before it is loaded. */
export class Tools {
  /** @internal */
  constructor(private readonly http: Http) {}

  /** Of each tool its active version, else its newest one; without code, tests and output. */
  list(options: CallOptions = {}): Listing<Tool> {
    return new Listing((cursor) => this.http.call("listTools", { query: given({ cursor }), signal: options.signal }));
  }

  /** All versions of a tool, newest first. */
  versions(name: string, options: CallOptions = {}): Listing<Tool> {
    return new Listing((cursor) => this.http.call("listToolVersions", { id: name, query: given({ cursor }), signal: options.signal }));
  }

  /** The active version of a tool, else its newest one, or another. */
  get(name: string, options: CallOptions & { version?: number } = {}): Promise<Tool> {
    const { version, signal } = options;
    return this.http.call("getTool", { id: name, query: given({ version }), signal });
  }

  /** Tests code, or makes a tool of a `package`, and loads it if the tests pass: `state` is active, or dormant with `error`. */
  forge(tool: ToolWanted, options: CallOptions = {}): Promise<Tool> {
    return this.http.call("forgeTool", { body: tool, signal: options.signal });
  }

  /** Code and tests for a specification, by the operator's generator or as skeletons. Nothing is forged of it. */
  generate(spec: ToolSpec, options: CallOptions = {}): Promise<ToolSource> {
    return this.http.call("generateTool", { body: spec, signal: options.signal });
  }

  /** Calls a tool: `result` if `ok`, else `error`. */
  call(
    name: string,
    args: Record<string, unknown> = {},
    options: CallOptions & { version?: number; timeout?: Duration } = {},
  ): Promise<ToolResult> {
    const { version, timeout, signal } = options;
    return this.http.call("callTool", { id: name, body: { arguments: args, ...given({ version }), ...duration("timeout", timeout) }, signal });
  }

  /** Loads the version before the active one, or the given one. */
  rollback(name: string, options: CallOptions & { version?: number } = {}): Promise<Tool> {
    const { version, signal } = options;
    return this.http.call("rollbackTool", { id: name, body: given({ version }), signal });
  }

  /** Removes a tool with all its versions. */
  async remove(name: string, options: CallOptions = {}): Promise<void> {
    await this.http.call("removeTool", { id: name, signal: options.signal });
  }
}
