/* Commands: what they take, how they end, their output as it comes, and those in the background. */
import "./dispose.js";
import { fromBase64, join, toBase64, toBytes, toText, type Bytes } from "./bytes.js";
import { ApprovalRequiredError, CommandFailedError, ConnectionError, problemFrom } from "./errors.js";
import type { ApprovalRequired, ExecInfo, ExecWanted, ResultInfo, SignalWanted } from "./generated.js";
import { targetOf, type CallOptions, type CreateOptions, type Http } from "./http.js";
import { Session } from "./session.js";
import { decode } from "./shapes.js";
import { readEvents } from "./sse.js";

/** Text is for `/bin/sh -c`; a list is a program and its arguments. */
export type Command = string | readonly string[];
/** Seconds, or text such as `"30s"`, `"5m"`. */
export type Duration = number | string;
/** Bytes, or text such as `"512M"`. */
export type Size = number | string;

/** How a command is run. */
export interface CommandOptions extends CallOptions {
  /** Where it runs. Default: the directory of the workspace. */
  cwd?: string | undefined;
  /** Variables, besides those of the workspace. */
  env?: Record<string, string> | undefined;
  /** Its whole input. */
  stdin?: string | Uint8Array | undefined;
  /** Wall time. Default: that of the workspace, or 300 s; none in the background. */
  timeout?: Duration | undefined;
  /** Cpu time of all its processes. */
  cpuTime?: Duration | undefined;
  /** Bytes of output, after which it is ended. */
  output?: Size | undefined;
  /** With a terminal of its own: all output is stdout. */
  tty?: boolean | undefined;
  /** Lines of the terminal. Default: 24. */
  rows?: number | undefined;
  /** Columns of the terminal. Default: 80. */
  columns?: number | undefined;
  /** The user in the sandbox: `agent`, or 1000. */
  user?: string | undefined;
}

/** How a command is run to its end. */
export interface RunOptions extends CommandOptions, CreateOptions {
  /** Throw {@link CommandFailedError} unless it ends with 0. */
  check?: boolean | undefined;
  /** Called with its output as it comes. */
  onStdout?: ((text: string) => void) | undefined;
  /** Called with its output as it comes. */
  onStderr?: ((text: string) => void) | undefined;
  /** Called with the id of the approval that it waits for. */
  onWaiting?: ((approval: string) => void) | undefined;
  /** `return`: throw {@link ApprovalRequiredError} instead of waiting for a reviewer; the command waits in the background. */
  approval?: "wait" | "return" | undefined;
}

/** How a command is run whose output is read as it comes. */
export interface StreamOptions extends CommandOptions {
  /** `learn` (scope admin): run what no rule denies, and tell the rules that would allow it. */
  policy?: "enforce" | "learn" | undefined;
}

/** How a command is started in the background. */
export interface StartOptions extends CommandOptions, CreateOptions {
  /** Its input is written later, by {@link Process.write}. */
  openStdin?: boolean | undefined;
  /** `return`: throw {@link ApprovalRequiredError} if it waits for a reviewer. */
  approval?: "wait" | "return" | undefined;
}

/** A duration as a member of a request: seconds go by milliseconds. @internal */
export function duration(name: string, value: Duration | null | undefined): Record<string, string | number | null> {
  if (value === undefined) return {};
  return typeof value === "number" ? { [`${name}Ms`]: Math.max(1, Math.round(value * 1000)) } : { [name]: value };
}

/** The body of POST …/exec. @internal */
export function execBody(command: Command, options: CommandOptions & Partial<StartOptions & StreamOptions>): ExecWanted {
  const { cwd, env, stdin, timeout, cpuTime, output, tty, rows, columns, user, openStdin, approval, policy } = options;
  const limits = { ...duration("cpuTime", cpuTime), ...(output === undefined ? {} : { output }) };
  return {
    ...(typeof command === "string" ? { command } : { argv: [...command] }),
    ...duration("timeout", timeout),
    ...(Object.keys(limits).length ? { limits } : {}),
    ...(stdin === undefined ? {} : { stdin: typeof stdin === "string" ? stdin : { base64: toBase64(stdin) } }),
    ...given({ cwd, env, tty, rows, columns, user, openStdin, approval, policy }),
  } as ExecWanted;
}

/** Without what is undefined. @internal */
export function given<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** A piece of output. */
export class Output {
  /** @internal */
  constructor(
    /** Where the command wrote it. */
    readonly stream: "stdout" | "stderr",
    private readonly content: string | Uint8Array,
  ) {}

  /** As text; what is not UTF-8 is U+FFFD. */
  get text(): string {
    return typeof this.content === "string" ? this.content : toText(this.content);
  }

  /** As the command wrote it. */
  get data(): Uint8Array {
    return typeof this.content === "string" ? toBytes(this.content) : this.content;
  }
}

/** How a command ended, what it wrote and what it used. */
export class Result {
  /** The id of the exec. */
  readonly id: string;
  /** What it ended with; 128 + signal for one that a signal ended. */
  readonly exitCode: number;
  /** The number of the signal that ended it. */
  readonly signal: number | null;
  /** Why it ended. */
  readonly reason: ResultInfo["reason"];
  /** The output as text; what is not UTF-8 is U+FFFD. */
  readonly stdout: string;
  /** The output as text; what is not UTF-8 is U+FFFD. */
  readonly stderr: string;
  /** Not all of the output is here. */
  readonly truncated: boolean;
  /** Wall time. */
  readonly durationMs: number;
  /** Cpu time. */
  readonly cpuMs: number;
  /** The largest memory of one of its processes. */
  readonly maxRssBytes: number;
  /** The mechanism that enforced the limits. */
  readonly limits: string | null;
  private readonly bytes: [Uint8Array, Uint8Array] | undefined;

  /** @internal */
  constructor(info: Partial<ResultInfo> & { id: string }, output?: [Uint8Array, Uint8Array]) {
    if (!output && info.encoding === "base64") output = [fromBase64(info.stdout ?? ""), fromBase64(info.stderr ?? "")];
    this.id = info.id;
    this.exitCode = info.exitCode ?? -1;
    this.signal = info.signal ?? null;
    this.reason = info.reason ?? "exited";
    this.stdout = output ? toText(output[0]) : (info.stdout ?? "");
    this.stderr = output ? toText(output[1]) : (info.stderr ?? "");
    this.truncated = info.truncated ?? false;
    this.durationMs = info.durationMs ?? 0;
    this.cpuMs = info.cpuMs ?? 0;
    this.maxRssBytes = info.maxRssBytes ?? 0;
    this.limits = info.limits ?? null;
    this.bytes = output;
  }

  /** Whether it ended with 0. */
  get ok(): boolean {
    return this.exitCode === 0;
  }

  /** The output as the command wrote it. */
  get stdoutBytes(): Uint8Array {
    return this.bytes?.[0] ?? toBytes(this.stdout);
  }

  /** The output as the command wrote it. */
  get stderrBytes(): Uint8Array {
    return this.bytes?.[1] ?? toBytes(this.stderr);
  }

  /** Itself; throws {@link CommandFailedError} unless the command ended with 0. */
  check(command = "the command"): this {
    if (!this.ok) throw new CommandFailedError(command, this);
    return this;
  }
}

/** @internal */
export function showCommand(command: Command): string {
  const text = typeof command === "string" ? command : command.join(" ");
  return `'${text.length <= 80 ? text : `${text.slice(0, 77)}...`}'`;
}

/** @internal */
export async function runCommand(http: Http, id: string, command: Command, options: RunOptions): Promise<Result> {
  const { onStdout, onStderr, onWaiting, check, signal, idempotencyKey } = options;
  let result: Result;
  if (onStdout || onStderr || onWaiting) {
    result = await new Stream(http, id, execBody(command, options), signal).collect(onStdout, onStderr, onWaiting);
  } else {
    const [status, value] = await http.callWithStatus("exec", { id, body: execBody(command, options), idempotencyKey, signal });
    if (status === 202) throw new ApprovalRequiredError(value as ApprovalRequired);
    result = new Result(value as ResultInfo);
  }
  return check ? result.check(showCommand(command)) : result;
}

/** @internal */
export async function startCommand(http: Http, id: string, command: Command, options: StartOptions, key: string): Promise<Process> {
  const body = { ...execBody(command, options), background: true };
  const [status, value] = await http.callWithStatus("exec", { id, body, idempotencyKey: key, signal: options.signal });
  if (status === 202) throw new ApprovalRequiredError(value as ApprovalRequired);
  return new Process(http, value as ExecInfo);
}

/** A command whose output is read as it comes, once. Leaving the loop before its end, or {@link Stream.close}, ends the command. */
export class Stream implements AsyncIterable<Output> {
  /** The id of the exec, once it has begun or waits. */
  id = "";
  /** The id of the approval that it waits for, or has waited for. */
  approval: string | undefined;
  /** With `policy: "learn"`: the rules that would allow it. */
  learned: Record<string, unknown> | undefined;
  private readonly ending = new AbortController();
  private reading: AsyncGenerator<Output, void, undefined> | undefined;
  private ended: Result | undefined;
  private told: (approval: string) => void = () => undefined;

  /** @internal */
  constructor(
    private readonly http: Http,
    private readonly workspace: string,
    private readonly body: ExecWanted,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Its output, piece by piece. */
  [Symbol.asyncIterator](): AsyncGenerator<Output, void, undefined> {
    return (this.reading ??= this.read());
  }

  private async *read(): AsyncGenerator<Output, void, undefined> {
    const abort = () => this.ending.abort(this.signal?.reason);
    if (this.signal?.aborted) abort();
    this.signal?.addEventListener("abort", abort, { once: true });
    try {
      const reply = await this.http.open("exec", {
        id: this.workspace,
        json: this.body,
        headers: { Accept: "text/event-stream" },
        signal: this.ending.signal,
      });
      for await (const { event, data } of readEvents(reply.chunks())) {
        const output = this.take(event, JSON.parse(data) as Record<string, unknown>);
        if (output) yield output;
      }
    } finally {
      this.signal?.removeEventListener("abort", abort);
    }
    if (!this.ended) throw new ConnectionError(`the output of exec '${this.id}' ended before the command did`, true);
  }

  private take(event: string, value: Record<string, unknown>): Output | undefined {
    switch (event) {
      case "stdout":
      case "stderr":
        return outputOf(event, value);
      case "waiting":
        this.approval = String(value["approval"]);
        this.id = String(value["id"]);
        this.told(this.approval);
        break;
      case "start":
        this.id = String(value["id"]);
        break;
      case "learned":
        this.learned = value;
        break;
      case "error":
        throw problemFrom(value, 0);
      case "exit":
        this.ended = new Result(decode("Result", value) as ResultInfo);
    }
    return undefined;
  }

  /** How the command ended, without its output. Reads what was not read yet. */
  async result(): Promise<Result> {
    if (!this.ended) for await (const _ of this) void _;
    if (!this.ended) throw new ConnectionError("the command was ended before its result came", true);
    return this.ended;
  }

  /** Reads all of it, calls back with each piece, and gives the result with the output. */
  async collect(
    onStdout?: (text: string) => void,
    onStderr?: (text: string) => void,
    onWaiting?: (approval: string) => void,
  ): Promise<Result> {
    const kept: Record<Output["stream"], Uint8Array[]> = { stdout: [], stderr: [] };
    if (onWaiting) this.told = onWaiting;
    for await (const output of this) {
      kept[output.stream].push(output.data);
      (output.stream === "stdout" ? onStdout : onStderr)?.(output.text);
    }
    const result = await this.result();
    return new Result(result, [join(kept.stdout), join(kept.stderr)]);
  }

  /** Ends the command, if it has not ended. */
  async close(): Promise<void> {
    if (!this.ended) this.ending.abort(new DOMException("the stream was closed", "AbortError"));
    await this.reading?.return(undefined).catch(() => undefined);
  }

  /** As {@link Stream.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** @internal */
export function outputOf(stream: Output["stream"], value: Record<string, unknown>): Output {
  const data = String(value["data"]);
  return new Output(stream, value["encoding"] === "base64" ? fromBase64(data) : data);
}

/** A command in the background: it goes on without this program, and its output is kept. */
export class Process {
  /** As the daemon showed it last. */
  info: ExecInfo;

  /** @internal */
  constructor(
    private readonly http: Http,
    info: ExecInfo,
  ) {
    this.info = info;
  }

  /** The id of the exec. */
  get id(): string {
    return this.info.id;
  }

  /** Asks how it is. */
  async refresh(options: CallOptions = {}): Promise<ExecInfo> {
    return (this.info = await this.http.call("getExec", { id: this.id, signal: options.signal }));
  }

  /** Waits until it has ended. */
  async wait(options: CallOptions = {}): Promise<ExecInfo> {
    do this.info = await this.http.call("getExec", { id: this.id, query: { wait: true }, signal: options.signal });
    while (this.info.state !== "ended");
    return this.info;
  }

  /** What it has written so far, from an offset on. */
  async output(options: CallOptions & { stream?: "stdout" | "stderr"; offset?: number } = {}): Promise<Uint8Array> {
    const { stream, offset, signal } = options;
    return (await this.http.open("getOutput", { id: this.id, query: { stream, offset }, signal })).bytes();
  }

  /** What it writes, piece by piece, until it has ended; with `follow: false` what it has written so far. */
  async *logs(options: CallOptions & { follow?: boolean } = {}): AsyncGenerator<Output, void, undefined> {
    const query = { follow: options.follow ?? true };
    const headers = { Accept: "text/event-stream" };
    const reply = await this.http.open("getOutput", { id: this.id, query, headers, signal: options.signal });
    for await (const { event, data } of readEvents(reply.chunks())) {
      const value = JSON.parse(data) as Record<string, unknown>;
      if (event === "stdout" || event === "stderr") yield outputOf(event, value);
      else if (event === "exit") this.info = decode("Exec", value) as ExecInfo;
    }
  }

  /** Sends a signal, by its name (`"INT"`) or number. */
  async signal(signal: SignalWanted["signal"], options: CallOptions = {}): Promise<void> {
    await this.http.call("signalExec", { id: this.id, body: { signal }, signal: options.signal });
  }

  /** Ends it at once, by SIGKILL. */
  async kill(options: CallOptions = {}): Promise<void> {
    await this.signal("KILL", options);
  }

  /** Writes to its stdin, which was started with `openStdin`; `eof` closes it afterwards. */
  async write(data: Bytes, options: CallOptions & { eof?: boolean } = {}): Promise<void> {
    const { eof, signal } = options;
    await (await this.http.open("writeStdin", { id: this.id, query: { eof }, data, signal })).bytes();
  }

  /** Closes its stdin. */
  async closeStdin(options: CallOptions = {}): Promise<void> {
    await this.write("", { ...options, eof: true });
  }

  /** Changes the size of its terminal. */
  async resize(rows: number, columns: number, options: CallOptions = {}): Promise<void> {
    await this.http.call("resizeTerminal", { id: this.id, body: { rows, columns }, signal: options.signal });
  }

  /** Its output, from the beginning or from offsets on, and its input, over a WebSocket. The command outlives the session. */
  attach(options: CallOptions & { offset?: number; stderrOffset?: number } = {}): Promise<Session> {
    const { signal, ...query } = options;
    const path = targetOf("attachExec", { id: this.id, query });
    return Session.open(this.http, path, undefined, () => this.refresh({ signal }), signal);
  }
}
