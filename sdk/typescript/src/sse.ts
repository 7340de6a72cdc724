/* Server-sent events: their reader, and a stream of them that goes on after a lost connection. */
import { ConnectionError, UnavailableError } from "./errors.js";
import { sleep } from "./http.js";
import type { Reply } from "./transport.js";

/** @internal */
export interface ServerEvent {
  event: string;
  data: string;
  /** The last one that was sent; it goes on with the next events. */
  id: string | undefined;
}

/** The events of a response, also those without data that only have an id. @internal */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  let event = "";
  let data: string[] = [];
  let id: string | undefined;
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (data.length || id !== undefined) yield { event, data: data.join("\n"), id };
        event = "";
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
      if (name === "data") data.push(value);
      else if (name === "event") event = value;
      else if (name === "id") id = value;
    }
  }
}

const SHORTEST_MS = 50;
const LONGEST_MS = 5000;

/** Events with ids. `open` sends a request for those after an id. After the connection was lost, or the daemon ended the response,
 * it is sent again, but does not start a daemon that was stopped; `isLast` says that nothing comes after an event. A first request that
 * fails is an error. @internal */
export async function* follow(
  open: (after: string | undefined, mayStart: boolean) => Promise<Reply>,
  after: string | undefined,
  isLast: (event: ServerEvent) => boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  let wait = SHORTEST_MS;
  let isFirst = true;
  for (;;) {
    try {
      const reply = await open(after, isFirst);
      isFirst = false;
      for await (const event of readEvents(reply.chunks())) {
        wait = SHORTEST_MS;
        after = event.id ?? after;
        if (event.data) yield event;
        if (event.data && isLast(event)) return;
      }
    } catch (error) {
      if (isFirst || !(error instanceof ConnectionError || error instanceof UnavailableError)) throw error;
    }
    await sleep(wait, signal);
    wait = Math.min(wait * 2, LONGEST_MS);
  }
}
