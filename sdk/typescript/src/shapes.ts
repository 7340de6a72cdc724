/* Names on the wire (snake_case) and names here (camelCase), by the schemas of /openapi.json. Keys of maps, such as labels and
 * variables, are data and stay as they are; so do names that no schema has. */
import { shapes } from "./generated.js";

type Shape = Map<string, [string, string?]>;
const none: Shape = new Map();
const fromWire = new Map<string, Shape>();
const toWire = new Map<string, Shape>();

function shapeOf(schema: string, cache: Map<string, Shape>, isWire: boolean): Shape {
  let shape = cache.get(schema);
  if (!shape) {
    const rows = Object.entries(shapes[schema] ?? {});
    shape = rows.length ? new Map(rows.map(([wire, [name, nested]]) => (isWire ? [wire, [name, nested]] : [name, [wire, nested]]))) : none;
    cache.set(schema, shape);
  }
  return shape;
}

function convert(schema: string, value: unknown, cache: Map<string, Shape>, isWire: boolean): unknown {
  if (typeof value !== "object" || value === null) return value;
  const shape = shapeOf(schema, cache, isWire);
  if (shape === none) return value;
  if (Array.isArray(value)) return value.map((item) => convert(schema, item, cache, isWire));
  const out: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    const field = shape.get(key);
    if (!field) out[key] = inner;
    else out[field[0]] = field[1] ? convert(field[1], inner, cache, isWire) : inner;
  }
  return out;
}

/** A value of the daemon as this client shows it. @internal */
export function decode(schema: string, value: unknown): unknown {
  return convert(schema, value, fromWire, true);
}

/** A value of the caller as the daemon reads it. @internal */
export function encode(schema: string, value: unknown): unknown {
  return convert(schema, value, toWire, false);
}
