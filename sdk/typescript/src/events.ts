/* What happens: events, and lines of the audit log. */
import type { AuditLine, CarrelEvent, Operations } from "./generated.js";
import type { CallOptions, Http, OpenCall } from "./http.js";
import { decode } from "./shapes.js";
import { follow, readEvents } from "./sse.js";

/** Which events. */
export interface EventOptions extends CallOptions {
  /** Those after the event with this id; 0: as far back as they are kept. Default: those from now on. */
  after?: number | undefined;
}

/** Which lines of the audit log. */
export interface AuditOptions extends CallOptions {
  /** From this time on: RFC 3339, or text such as `"1h"`, which is an hour ago. */
  since?: string | undefined;
  /** Up to this time. */
  until?: string | undefined;
  /** Only of this workspace. */
  workspace?: string | undefined;
  /** Only of this type. */
  type?: string | undefined;
  /** Go on with new lines, also after a lost connection. */
  follow?: boolean | undefined;
  /** Lines after the one with this number. */
  after?: number | undefined;
}

/** @internal */
export async function* eventsOf(
  http: Http,
  operation: keyof Operations,
  call: OpenCall,
  options: EventOptions,
  last?: string,
): AsyncGenerator<CarrelEvent, void, undefined> {
  const open = (after: string | undefined, mayStart: boolean) => {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (after !== undefined) headers["Last-Event-ID"] = after;
    const query = after === undefined ? { ...call.query, after: options.after } : call.query;
    return http.open(operation, { ...call, query, headers, mayStart, signal: options.signal });
  };
  for await (const { data } of follow(open, undefined, ({ event }) => event === last, options.signal))
    yield decode("Event", JSON.parse(data)) as CarrelEvent;
}

/** @internal */
export async function* auditOf(http: Http, options: AuditOptions): AsyncGenerator<AuditLine, void, undefined> {
  const { signal, after, ...query } = options;
  const open = (from: string | undefined, mayStart: boolean) => {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (from !== undefined) headers["Last-Event-ID"] = from;
    return http.open("audit", { query, headers, mayStart, signal });
  };
  const first = after === undefined ? undefined : String(after);
  /* Without `follow` the response ends by itself. */
  const events = options.follow ? follow(open, first, () => false, signal) : readEvents((await open(first, true)).chunks());
  for await (const { data } of events) if (data) yield decode("AuditLine", JSON.parse(data)) as AuditLine;
}
