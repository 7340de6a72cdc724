/* The client. */
import "./dispose.js";
import { given } from "./commands.js";
import { auditOf, eventsOf, type AuditOptions, type EventOptions } from "./events.js";
import type { AuditLine, CarrelEvent, CodeResult, CodeWanted, DaemonHealth, OpenApiDocument, WorkspaceInfo, WorkspaceMetrics } from "./generated.js";
import { Http, type CallOptions, type CarrelOptions } from "./http.js";
import { Listing } from "./listing.js";
import { Agents, Approvals, Archives, Cases, Deployments, Environments, Execs, Exports, Packages, Snapshots, Templates, Tokens, Tools, Trees } from "./nouns.js";
import { createWorkspace, Workspace, type WorkspaceOptions } from "./workspace.js";

/** Which workspaces. */
export interface WorkspaceFilter extends CallOptions {
  /** Only those with this label, `KEY=VALUE` or `KEY`; of several, with all of them. */
  label?: string | readonly string[] | undefined;
  /** Only those in this state. */
  state?: WorkspaceInfo["state"] | undefined;
}

/**
 * A client of a daemon. Without options it is that of this user, which is started when there is none; `CARREL_HOST` and
 * `CARREL_TOKEN` name another one.
 *
 * @example
 * ```ts
 * const carrel = new Carrel({ host: "https://build.example:7070", token: "…" });
 * await using workspace = await carrel.create({ pip: ["requests"] });
 * const { stdout } = await workspace.run("python -c 'import requests; print(requests.__version__)'", { check: true });
 * ```
 */
export class Carrel {
  /** Commands of all workspaces. */
  readonly execs: Execs;
  /** Templates, of which workspaces are made. */
  readonly templates: Templates;
  /** Snapshots of all workspaces. */
  readonly snapshots: Snapshots;
  /** Archived workspaces. */
  readonly archives: Archives;
  /** Environments that are built. */
  readonly environments: Environments;
  /** Exported environments of the blob store. */
  readonly exports: Exports;
  /** Directories that workspaces share. */
  readonly trees: Trees;
  /** Tools: Python code that is tested before it is loaded. */
  readonly tools: Tools;
  /** Access tokens. */
  readonly tokens: Tokens;
  /** Commands that wait for a reviewer. */
  readonly approvals: Approvals;
  /** Agent packages of the blob store. */
  readonly packages: Packages;
  /** Agent packages that are served. */
  readonly deployments: Deployments;
  /** Eval cases and their cells. */
  readonly cases: Cases;
  /** A2A agents. */
  readonly agents: Agents;
  private readonly http: Http;

  /** Connects with the first call. */
  constructor(options: CarrelOptions = {}) {
    this.http = new Http(options);
    this.execs = new Execs(this.http);
    this.templates = new Templates(this.http);
    this.snapshots = new Snapshots(this.http);
    this.archives = new Archives(this.http);
    this.environments = new Environments(this.http);
    this.exports = new Exports(this.http);
    this.trees = new Trees(this.http);
    this.tokens = new Tokens(this.http);
    this.tools = new Tools(this.http);
    this.approvals = new Approvals(this.http);
    this.cases = new Cases(this.http);
    this.agents = new Agents(this.http);
    this.packages = new Packages(this.http);
    this.deployments = new Deployments(this.http);
  }

  /** Closes connections that are not used. They don't keep a program running. */
  close(): Promise<void> {
    return this.http.close();
  }

  /** As {@link Carrel.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Creates a workspace. Aborting the signal cancels the creation. */
  create(options: WorkspaceOptions = {}): Promise<Workspace> {
    return createWorkspace(this.http, options);
  }

  /** The workspace with that id or name. */
  async get(workspace: string, options: CallOptions = {}): Promise<Workspace> {
    return new Workspace(this.http, await this.http.call("getWorkspace", { id: workspace, signal: options.signal }), false);
  }

  /** Workspaces, newest first. */
  list(filter: WorkspaceFilter = {}): Listing<Workspace> {
    return new Listing(async (cursor) => {
      const page = await this.http.call("listWorkspaces", { query: filterOf(filter, cursor), signal: filter.signal });
      return { ...page, items: page.items.map((info) => new Workspace(this.http, info, false)) };
    });
  }

  /** Runs code once, in a workspace that is made for it and removed afterwards, and its tests. */
  runCode(code: string, options: CallOptions & Omit<CodeWanted, "code"> = {}): Promise<CodeResult> {
    const { signal, ...rest } = options;
    return this.http.call("runCode", { body: { ...rest, code }, signal });
  }

  /** What workspaces use, newest first. */
  metrics(filter: WorkspaceFilter = {}): Listing<WorkspaceMetrics> {
    return new Listing((cursor) => this.http.call("listMetrics", { query: filterOf(filter, cursor), signal: filter.signal }));
  }

  /** What happens, in all workspaces or one; goes on after a lost connection. */
  events(options: EventOptions & { workspace?: string } = {}): AsyncGenerator<CarrelEvent, void, undefined> {
    return eventsOf(this.http, "events", { query: given({ workspace: options.workspace }) }, options);
  }

  /** Lines of the audit log, oldest first. */
  audit(options: AuditOptions = {}): AsyncGenerator<AuditLine, void, undefined> {
    return auditOf(this.http, options);
  }

  /** Whether the daemon answers. */
  health(options: CallOptions = {}): Promise<DaemonHealth> {
    return this.http.call("healthz", options);
  }

  /** Whether the daemon accepts work. */
  ready(options: CallOptions = {}): Promise<DaemonHealth> {
    return this.http.call("readyz", options);
  }

  /** Metrics of the daemon in Prometheus' text format. */
  async prometheus(options: CallOptions = {}): Promise<string> {
    return (await this.http.open("metrics", options)).text();
  }

  /** The OpenAPI document of the daemon. */
  openapi(options: CallOptions = {}): Promise<OpenApiDocument> {
    return this.http.call("openapi", options);
  }
}

function filterOf({ label, state }: WorkspaceFilter, cursor: string | undefined) {
  return given({ label: label === undefined ? undefined : [label].flat(), state, cursor }) as {
    label?: string[];
    state?: WorkspaceInfo["state"];
    cursor?: string;
  };
}
