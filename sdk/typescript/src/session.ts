/* An interactive command, over a WebSocket. docs/websocket.md has the messages. */
import "./dispose.js";
import { toBytes } from "./bytes.js";
import { ConnectionError, problemFrom } from "./errors.js";
import type { ResultInfo } from "./generated.js";
import type { Http } from "./http.js";
import { decode } from "./shapes.js";
import type { Channel } from "./transport.js";
import { Output, Result } from "./commands.js";

const PROTOCOL = "carrel.exec.v1";
const PIECE = 65535; /* of stdin: a message has 64 kB, with the byte that names the stream */
const NORMAL = 1000;

/** A command that is talked to: a shell on a terminal, a REPL, a language server. Iterate over its {@link Output}. */
export class Session implements AsyncIterable<Output> {
  private ended: Result | undefined;
  private exec = "";
  private approvalId: string | undefined;

  private constructor(private readonly channel: Channel) {}

  /** @internal */
  static async open(http: Http, path: string, start: object | undefined, probe: () => Promise<unknown>, signal?: AbortSignal): Promise<Session> {
    const channel = await http.socket(path, PROTOCOL, probe, signal);
    const session = new Session(channel);
    /* A daemon that refuses at once has said why, which the first read tells. */
    if (start) await session.sendText({ type: "start", ...start }).catch(() => undefined);
    return session;
  }

  /** The id of the exec, once something came from it. */
  get id(): string {
    return this.exec;
  }

  /** The id of the approval that it waits for, or has waited for, once {@link Session.read} has seen it. */
  get approval(): string | undefined {
    return this.approvalId;
  }

  /** Writes to its stdin, or to its terminal. */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? toBytes(data) : data;
    for (let at = 0; at < bytes.length; at += PIECE) {
      const piece = bytes.subarray(at, at + PIECE);
      const message = new Uint8Array(1 + piece.length);
      message.set(piece, 1);
      await this.channel.send(message);
    }
  }

  /** Closes its stdin. */
  async closeStdin(): Promise<void> {
    await this.channel.send(new Uint8Array(1));
  }

  /** Changes the size of its terminal. */
  async resize(rows: number, columns: number): Promise<void> {
    await this.sendText({ type: "resize", cols: columns, rows });
  }

  /** Sends a signal, by its name: `"INT"`. */
  async signal(signal: string): Promise<void> {
    await this.sendText({ type: "signal", signal });
  }

  private sendText(message: object): Promise<void> {
    return this.channel.send(JSON.stringify(message));
  }

  /** The next piece of output; undefined: it has ended. */
  async read(): Promise<Output | undefined> {
    const { done, value } = await this[Symbol.asyncIterator]().next();
    return done ? undefined : value;
  }

  /** Its output, piece by piece. A loop that ends early can be followed by another one. */
  [Symbol.asyncIterator](): AsyncGenerator<Output, void, undefined> {
    return this.readOn();
  }

  private async *readOn(): AsyncGenerator<Output, void, undefined> {
    while (!this.ended) {
      const message = await this.channel.receive();
      if (message === undefined) {
        throw new ConnectionError("the session was closed before the command ended", true);
      } else if (typeof message !== "string") {
        if (message[0] === 1 || message[0] === 2) yield new Output(message[0] === 1 ? "stdout" : "stderr", message.subarray(1));
      } else {
        this.take(JSON.parse(message) as Record<string, unknown>);
      }
    }
  }

  private take(message: Record<string, unknown>): void {
    if (message["type"] === "started" || message["type"] === "waiting") this.exec = String(message["exec"]);
    if (message["type"] === "waiting") this.approvalId = String(message["approval"]);
    if (message["type"] === "error") {
      this.channel.close(NORMAL);
      throw problemFrom(message, Number(message["status"]));
    }
    if (message["type"] !== "exit") return;
    this.ended = new Result(decode("Result", message) as ResultInfo);
    this.channel.close(NORMAL);
  }

  /** How the command ended, without its output. Reads what was not read yet. */
  async result(): Promise<Result> {
    for await (const _ of this) void _;
    return this.ended as Result;
  }

  /** Ends the session, and with it a command that it started. */
  async close(): Promise<void> {
    this.channel.close(NORMAL);
  }

  /** As {@link Session.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
