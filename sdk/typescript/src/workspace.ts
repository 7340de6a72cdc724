/* A workspace: files, packages and limits that stay, and the commands that run there. */
import "./dispose.js";
import {
  duration,
  execBody,
  given,
  Process,
  runCommand,
  startCommand,
  Stream,
  type Command,
  type CommandOptions,
  type Duration,
  type Result,
  type RunOptions,
  type Size,
  type StartOptions,
  type StreamOptions,
} from "./commands.js";
import { NotFoundError } from "./errors.js";
import { eventsOf, type EventOptions } from "./events.js";
import { Files } from "./files.js";
import type {
  Applied,
  ApplyWanted,
  Archive,
  Change,
  CarrelEvent,
  ForkWanted,
  IsolationVerdict,
  LimitsWanted,
  NetworkWanted,
  NodeWanted,
  Package,
  PackagesChanged,
  PackagesWanted,
  PortInfo,
  Push,
  PushWanted,
  PythonWanted,
  RollbackWanted,
  Snapshot,
  SnapshotWanted,
  WorkspaceChange,
  WorkspaceHealth,
  WorkspaceInfo,
  WorkspaceMetrics,
  WorkspaceRepair,
  WorkspaceWanted,
} from "./generated.js";
import { newKey, targetOf, type CallOptions, type CreateOptions, type Http } from "./http.js";
import { Listing } from "./listing.js";
import { Connection, connectPort, fetchPort, Forward, forwardPort, type PortRequest } from "./ports.js";
import { Session } from "./session.js";
import { decode, encode } from "./shapes.js";

/** What a new workspace is made of; see `WorkspaceWanted` for the fields of the REST API. */
export interface WorkspaceOptions extends Omit<WorkspaceWanted, "ttl" | "idleTimeout" | "network">, CreateOptions {
  /** Python packages of its environment, which is built if it does not exist: `["requests", "pandas>=2"]`. */
  pip?: readonly string[] | undefined;
  /** The text of a requirements file. */
  requirements?: string | undefined;
  /** Node packages: `["axios", "typescript@5"]`. */
  npm?: readonly string[] | undefined;
  /** Memory of all its processes. */
  memory?: Size | undefined;
  /** Size of its files. */
  disk?: Size | undefined;
  /** How many processors, such as 0.5. */
  cpus?: number | undefined;
  /** `none`, `open`, a list of hosts that may be reached, or the fields of the REST API. */
  network?: "none" | "open" | readonly string[] | NetworkWanted | undefined;
  /** It is removed after this time. */
  ttl?: Duration | undefined;
  /** It is suspended after this time without activity. */
  idleTimeout?: Duration | undefined;
}

/** Changes of a workspace; what is not given stays. A label or a variable that is null is removed, as are other fields. */
export interface WorkspaceUpdate extends Omit<WorkspaceChange, "ttl" | "idleTimeout">, CallOptions {
  /** From now on. */
  ttl?: Duration | null | undefined;
  /** It is suspended after this time without activity. */
  idleTimeout?: Duration | null | undefined;
}

/** Which changes of a workspace. */
export interface DiffOptions extends CallOptions {
  /** Only these, and what is below them. */
  paths?: readonly string[] | undefined;
  /** Since this snapshot: its id, tag or version. Default: the last one. */
  snapshot?: string | undefined;
}

type WithTimeout<T> = Omit<T, "timeout" | "timeoutMs"> & {
  /** How long it waits for commands that run. Default: 5 minutes. */
  timeout?: Duration | undefined;
};
/** How a snapshot is made. */
export interface SnapshotOptions extends WithTimeout<SnapshotWanted>, CallOptions {}
/** How a workspace is rolled back. */
export interface RollbackOptions extends Omit<WithTimeout<RollbackWanted>, "snapshot">, CallOptions {}
/** How a workspace is forked. */
export interface ForkOptions extends Omit<WithTimeout<ForkWanted>, "count">, CallOptions {}
/** How changes are applied. */
export interface ApplyOptions extends Omit<ApplyWanted, "to">, CallOptions {}
/** How packages are installed. */
export interface PackageOptions extends Omit<PackagesWanted, "packages">, CallOptions {}

function environmentOf<T extends PythonWanted | NodeWanted>(
  version: T | string | null | undefined,
  packages: readonly string[] | undefined,
  requirements?: string,
): T | string | null | undefined {
  if (!packages && requirements === undefined) return version;
  const given = typeof version === "string" ? { version } : { ...version };
  return {
    ...given,
    ...(packages ? { packages: [...((given as PythonWanted).packages ?? []), ...packages] } : {}),
    ...(requirements === undefined ? {} : { requirements }),
  } as T;
}

function networkOf(network: WorkspaceOptions["network"]): NetworkWanted | undefined {
  if (typeof network === "string") return { mode: network };
  return Array.isArray(network) ? { mode: "list", allow: [...network] } : (network as NetworkWanted | undefined);
}

/** @internal */
export async function createWorkspace(http: Http, options: WorkspaceOptions): Promise<Workspace> {
  const { pip, npm, requirements, memory, disk, cpus, network, ttl, idleTimeout, python, node, limits, signal, idempotencyKey, ...rest } = options;
  const bounds: LimitsWanted = { ...limits, ...(given({ memory, disk, cpus }) as LimitsWanted) };
  const body = {
    ...rest,
    ...duration("ttl", ttl),
    ...duration("idleTimeout", idleTimeout),
    ...given({ python: environmentOf(python, pip, requirements), node: environmentOf(node, npm), network: networkOf(network) }),
    ...(Object.keys(bounds).length ? { limits: bounds } : {}),
  } as WorkspaceWanted;
  const key = idempotencyKey ?? newKey();
  /* A client that gives up leaves nothing behind, unless it may ask again with its own key. */
  const headers: Record<string, string> = { Accept: "application/json" };
  if (idempotencyKey === undefined) headers["Carrel-Cancel"] = "disconnect";
  const reply = await http.open("createWorkspace", { json: body, key, headers, signal });
  return new Workspace(http, decode("Workspace", JSON.parse(await reply.text())) as WorkspaceInfo, true);
}

/**
 * A workspace. With `await using`, one that this client has created is removed at the end of the block.
 *
 * @example
 * ```ts
 * await using workspace = await new Carrel().create({ env: { NAME: "world" } });
 * console.log((await workspace.run("echo hello $NAME")).stdout);
 * ```
 */
export class Workspace {
  /** As the daemon showed it last. */
  info: WorkspaceInfo;
  /** Its files. */
  readonly files: Files;

  /** @internal */
  constructor(
    private readonly http: Http,
    info: WorkspaceInfo,
    private readonly isOurs: boolean,
  ) {
    this.info = info;
    this.files = new Files(http, info.id);
  }

  /** Its id, which stays. */
  get id(): string {
    return this.info.id;
  }

  /** Its name. */
  get name(): string {
    return this.info.name;
  }

  /** When it was last asked for: {@link Workspace.refresh} asks. */
  get state(): WorkspaceInfo["state"] {
    return this.info.state;
  }

  /** Removes it, if this client has created it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isOurs) return;
    try {
      await this.remove();
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
  }

  /* ---- its life ---- */

  /** Asks how it is; `measure` measures its disk usage first. */
  async refresh(options: CallOptions & { measure?: boolean } = {}): Promise<WorkspaceInfo> {
    const { measure, signal } = options;
    return (this.info = await this.http.call("getWorkspace", { id: this.id, query: given({ measure }), signal }));
  }

  /** Changes labels, variables, limits, the network, policies and lifetimes. */
  async update(change: WorkspaceUpdate): Promise<WorkspaceInfo> {
    const { ttl, idleTimeout, signal, ...rest } = change;
    const body = { ...rest, ...duration("ttl", ttl), ...duration("idleTimeout", idleTimeout) } as WorkspaceChange;
    return (this.info = await this.http.call("changeWorkspace", { id: this.id, body, signal }));
  }

  /** Removes it and ends its commands. `archive`: whether its files and settings are kept; default: as the daemon is configured. */
  async remove(options: CallOptions & { archive?: boolean } = {}): Promise<Archive | undefined> {
    const query = options.archive === undefined ? {} : { archive: String(options.archive) };
    const text = await (await this.http.open("removeWorkspace", { id: this.id, query, signal: options.signal })).text();
    return text ? (decode("Archive", JSON.parse(text)) as Archive) : undefined;
  }

  /** Removes it, and keeps its files and settings as one archive: {@link Archives.restore} brings it back. */
  async archive(options: CallOptions = {}): Promise<Archive> {
    return (await this.remove({ ...options, archive: true })) as Archive;
  }

  /** Ends its processes and keeps its files; with `force` also while commands run. */
  async suspend(options: CallOptions & { force?: boolean } = {}): Promise<WorkspaceInfo> {
    const { force, signal } = options;
    return (this.info = await this.http.call("suspendWorkspace", { id: this.id, body: given({ force }), signal }));
  }

  /** Starts its sandbox, as the next command would. */
  async resume(options: CallOptions = {}): Promise<WorkspaceInfo> {
    return (this.info = await this.http.call("resumeWorkspace", { id: this.id, signal: options.signal }));
  }

  /** Checks it; `deep` compares every file of its layers with its hash. */
  async health(options: CallOptions & { deep?: boolean } = {}): Promise<WorkspaceHealth> {
    const { deep, signal } = options;
    return this.http.call("checkWorkspace", { id: this.id, query: given({ deep }), signal });
  }

  /** Repairs what {@link Workspace.health} finds. */
  async repair(options: CallOptions & { deep?: boolean } = {}): Promise<WorkspaceRepair> {
    const { deep, signal } = options;
    return this.http.call("repairWorkspace", { id: this.id, query: given({ deep }), signal });
  }

  /** Checks the isolation of its sandbox, from outside and from inside. */
  async verify(options: CallOptions = {}): Promise<IsolationVerdict> {
    return this.http.call("verifyIsolation", { id: this.id, signal: options.signal });
  }

  /** What it uses now. */
  async metrics(options: CallOptions = {}): Promise<WorkspaceMetrics> {
    return this.http.call("workspaceMetrics", { id: this.id, signal: options.signal });
  }

  /** What happens in it, until it is removed; goes on after a lost connection. */
  events(options: EventOptions = {}): AsyncGenerator<CarrelEvent, void, undefined> {
    return eventsOf(this.http, "workspaceEvents", { id: this.id }, options, "workspace.deleted");
  }

  /* ---- commands ---- */

  /**
   * Runs a command to its end. How it ended is in the result: only `check: true` makes a failure an error. Aborting the signal ends
   * the command, unless it has an `idempotencyKey`. Without such a key, the request is never sent twice.
   */
  run(command: Command, options: RunOptions = {}): Promise<Result> {
    return runCommand(this.http, this.id, command, options);
  }

  /** Runs a program with these arguments, without a shell: `exec(["ls", "-l"])`. Otherwise as {@link Workspace.run}. */
  exec(argv: readonly string[], options: RunOptions = {}): Promise<Result> {
    return runCommand(this.http, this.id, argv, options);
  }

  /** Runs a command and gives its output piece by piece. */
  stream(command: Command, options: StreamOptions = {}): Stream {
    return new Stream(this.http, this.id, execBody(command, options), options.signal);
  }

  /** Starts a command in the background: it goes on without this program. */
  start(command: Command, options: StartOptions = {}): Promise<Process> {
    return startCommand(this.http, this.id, command, options, options.idempotencyKey ?? newKey());
  }

  /** Starts an interactive command over a WebSocket. Closing the session ends the command. */
  session(command: Command, options: Omit<CommandOptions, "stdin"> = {}): Promise<Session> {
    const start = encode("ExecWanted", execBody(command, options)) as object;
    const path = targetOf("execSocket", { id: this.id });
    return Session.open(this.http, path, start, () => this.refresh(options), options.signal);
  }

  /** Its commands, newest first. */
  execs(options: CallOptions = {}): Listing<Process> {
    return new Listing(async (cursor) => {
      const page = await this.http.call("listExecs", { id: this.id, query: given({ cursor }), signal: options.signal });
      return { ...page, items: page.items.map((info) => new Process(this.http, info)) };
    });
  }

  /* ---- packages ---- */

  /** The packages of Python and Node that a command finds. */
  async packages(options: CallOptions = {}): Promise<Package[]> {
    return (await this.http.call("listPackages", { id: this.id, signal: options.signal })).items;
  }

  /** Installs packages, also while commands run. Those of Node with `kind: "node"`. */
  install(packages: string | readonly string[], options: PackageOptions = {}): Promise<PackagesChanged> {
    const { signal, ...rest } = options;
    return this.http.call("installPackages", { id: this.id, body: { packages: [packages].flat(), ...rest }, signal });
  }

  /** Uninstalls packages, by their names. */
  uninstall(packages: string | readonly string[], options: PackageOptions = {}): Promise<PackagesChanged> {
    const { signal, ...rest } = options;
    return this.http.call("uninstallPackages", { id: this.id, body: { packages: [packages].flat(), ...rest }, signal });
  }

  /* ---- its states ---- */

  /** Keeps its present state, without copying it. */
  snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    const { timeout, signal, ...rest } = options;
    return this.http.call("createSnapshot", { id: this.id, body: { ...rest, ...duration("timeout", timeout) }, signal });
  }

  /** Its snapshots, newest first. */
  snapshots(options: CallOptions = {}): Listing<Snapshot> {
    return new Listing((cursor) => this.http.call("listWorkspaceSnapshots", { id: this.id, query: given({ cursor }), signal: options.signal }));
  }

  /** Puts it back into the state of a snapshot: its id, tag or version. The state that it leaves is kept as a snapshot. */
  async rollback(snapshot: string, options: RollbackOptions = {}): Promise<WorkspaceInfo> {
    const { timeout, signal, ...rest } = options;
    const body = { snapshot, ...rest, ...duration("timeout", timeout) };
    return (this.info = await this.http.call("rollbackWorkspace", { id: this.id, body, signal }));
  }

  /** A new workspace with its present state, or that of a snapshot. */
  async fork(options: ForkOptions = {}): Promise<Workspace> {
    return (await this.forks(1, options))[0] as Workspace;
  }

  /** Several at once: NAME-1, NAME-2 … */
  async forks(count: number, options: ForkOptions = {}): Promise<Workspace[]> {
    const { timeout, signal, ...rest } = options;
    const body = { ...rest, ...(count === 1 ? {} : { count }), ...duration("timeout", timeout) };
    const { items } = await this.http.call("forkWorkspace", { id: this.id, body, signal });
    return items.map((info) => new Workspace(this.http, info, true));
  }

  /** Sends a snapshot to the blob store; {@link Snapshots.pull} fetches it, also into another home. */
  push(snapshot: string, options: Omit<PushWanted, "snapshot"> & CallOptions = {}): Promise<Push> {
    const { signal, ...rest } = options;
    return this.http.call("pushSnapshot", { id: this.id, body: { snapshot, ...rest }, signal });
  }

  /** What has changed since its last snapshot; `all`: also in /env and node_modules. */
  async diff(options: DiffOptions & { all?: boolean } = {}): Promise<Change[]> {
    const { paths, snapshot, all, signal } = options;
    return (await this.http.call("diffWorkspace", { id: this.id, query: diffQuery(paths, snapshot, all), signal })).items;
  }

  /** The same as a patch, for `git apply`. */
  async patch(options: DiffOptions & { all?: boolean } = {}): Promise<string> {
    const { paths, snapshot, all, signal } = options;
    const query = { ...diffQuery(paths, snapshot, all), patch: true };
    return (await this.http.open("diffWorkspace", { id: this.id, query, signal })).text();
  }

  /** The changed files themselves: the bytes of a tar archive, whose member `changes` says what was done. */
  async *changes(options: DiffOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const { paths, snapshot, signal } = options;
    yield* (await this.http.open("packChanges", { id: this.id, query: diffQuery(paths, snapshot), signal })).chunks();
  }

  /** Applies its changes to another workspace: all of them, or none ({@link ConflictError}, whose `changes` say why). */
  apply(to: string | Workspace, options: ApplyOptions = {}): Promise<Applied> {
    const { signal, ...rest } = options;
    const body = { to: typeof to === "string" ? to : to.id, ...rest };
    return this.http.call("applyChanges", { id: this.id, body, signal });
  }

  /* ---- ports ---- */

  /** The TCP ports that listen in it. */
  ports(options: CallOptions = {}): Listing<PortInfo> {
    return new Listing((cursor) => this.http.call("listPorts", { id: this.id, query: given({ cursor }), signal: options.signal }));
  }

  /** One HTTP request to a server in it; the response of the server, whatever its status. */
  fetch(port: number, path = "/", request: PortRequest = {}): Promise<Response> {
    return fetchPort(this.http, this.id, port, path, request);
  }

  /** A TCP connection to a server in it. */
  async connect(port: number, options: CallOptions = {}): Promise<Connection> {
    return new Connection(await connectPort(this.http, this.id, port, options.signal));
  }

  /** Listens on this host; each connection leads to the port of the workspace. */
  forward(port: number, options: { host?: string; localPort?: number } = {}): Promise<Forward> {
    return forwardPort(this.http, this.id, port, options.host ?? "127.0.0.1", options.localPort ?? 0);
  }
}

function diffQuery(paths: readonly string[] | undefined, snapshot: string | undefined, all?: boolean) {
  return given({ path: paths && [...paths], snapshot, all }) as { path?: string[]; snapshot?: string; all?: boolean };
}
