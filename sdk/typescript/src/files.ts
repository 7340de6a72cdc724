/* The files of a workspace. */
import { toText, type Bytes } from "./bytes.js";
import { NotFoundError } from "./errors.js";
import type { FileInfo } from "./generated.js";
import type { CallOptions, Http } from "./http.js";
import { Listing, type Page } from "./listing.js";
import { decode } from "./shapes.js";

/** The files of a workspace. Paths are relative to its directory, or absolute, as a command in it sees them. */
export class Files {
  /** @internal */
  constructor(
    private readonly http: Http,
    private readonly id: string,
  ) {}

  /** The bytes of a file, or those from `start` up to but not including `end`. */
  async read(path: string, options: CallOptions & { start?: number; end?: number } = {}): Promise<Uint8Array> {
    const { start, end, signal } = options;
    if (end !== undefined && end <= (start ?? 0)) return new Uint8Array();
    const isPart = start !== undefined || end !== undefined;
    const headers: Record<string, string> = isPart ? { Range: `bytes=${start ?? 0}-${end === undefined ? "" : end - 1}` } : {};
    return (await this.http.open("readFile", { id: this.id, path, headers, signal })).bytes();
  }

  /** A file as text, which is UTF-8. */
  async readText(path: string, options: CallOptions = {}): Promise<string> {
    return toText(await this.read(path, options));
  }

  /** A file piece by piece. */
  async *stream(path: string, options: CallOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    yield* (await this.http.open("readFile", { id: this.id, path, signal: options.signal })).chunks();
  }

  /** Writes a file, whole or not at all. With `existOk: false` a file that exists is an error. */
  async write(path: string, data: Bytes, options: CallOptions & { mode?: number; existOk?: boolean } = {}): Promise<FileInfo> {
    const headers: Record<string, string> = options.existOk === false ? { "If-None-Match": "*" } : {};
    return this.put(path, { mode: options.mode?.toString(8) }, data, headers, options.signal);
  }

  /** Copies a file of this host into the workspace. */
  async upload(source: string, path: string, options: CallOptions & { mode?: number } = {}): Promise<FileInfo> {
    const { readPieces } = await import("./node.js");
    return this.write(path, readPieces(source), options);
  }

  /** Copies a file of the workspace to this host. */
  async download(path: string, target: string, options: CallOptions = {}): Promise<void> {
    const { writePieces } = await import("./node.js");
    await writePieces(target, this.stream(path, options));
  }

  /** The entries of a directory. */
  list(path = "", options: CallOptions = {}): Listing<FileInfo> {
    return new Listing(async (cursor) => {
      const query = { list: true, cursor };
      const reply = await this.http.open("readFile", { id: this.id, path, query, signal: options.signal });
      return decode("Files", JSON.parse(await reply.text())) as Page<FileInfo>;
    });
  }

  /** What a path is; a link is not followed. */
  async stat(path: string, options: CallOptions = {}): Promise<FileInfo> {
    const reply = await this.http.open("readFile", { id: this.id, path, query: { stat: true }, signal: options.signal });
    return decode("FileInfo", JSON.parse(await reply.text())) as FileInfo;
  }

  /** Whether there is something at the path. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** The size of a file in bytes; a link is followed. */
  async size(path: string, options: CallOptions = {}): Promise<number> {
    const reply = await this.http.open("readFileHead", { id: this.id, path, signal: options.signal });
    await reply.bytes();
    return Number(reply.header("content-length"));
  }

  /** Makes a directory, and those above it. One that exists is no error. */
  async mkdir(path: string, options: CallOptions = {}): Promise<FileInfo> {
    return this.put(path, { mkdir: true }, undefined, {}, options.signal);
  }

  /** Moves a file or a directory. */
  async move(path: string, to: string, options: CallOptions = {}): Promise<FileInfo> {
    return this.put(path, { move: to }, undefined, {}, options.signal);
  }

  /** Removes a file, or with `recursive` a directory and what is in it. */
  async remove(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<void> {
    await this.http.call("removeFile", { id: this.id, path, query: { recursive: options.recursive }, signal: options.signal });
  }

  /** The bytes of an archive of a directory. Default: of the whole workspace, as tar. */
  async *pack(path?: string, options: CallOptions & { format?: "tar" | "tar.zst" } = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const { format, signal } = options;
    yield* (await this.http.open("packTree", { id: this.id, query: { path, format }, signal })).chunks();
  }

  /** Unpacks a tar or tar.zst archive into a directory. */
  async unpack(data: Bytes, path?: string, options: CallOptions = {}): Promise<void> {
    await (await this.http.open("unpackTree", { id: this.id, query: { path }, data, signal: options.signal })).bytes();
  }

  private async put(
    path: string,
    query: object,
    data: Bytes | undefined,
    headers: Record<string, string>,
    signal: AbortSignal | undefined,
  ): Promise<FileInfo> {
    const reply = await this.http.open("writeFile", { id: this.id, path, query, data, headers, signal });
    return decode("FileInfo", JSON.parse(await reply.text())) as FileInfo;
  }
}
