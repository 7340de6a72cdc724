#!/usr/bin/env node
/* Writes src/generated.ts from the daemon's /openapi.json:
 *     curl -sS --unix-socket SOCKET http://carrel/openapi.json | node tools/generate.mjs > src/generated.ts
 * `npm run generate` asks the local daemon. Three things are written: an interface for each schema, with names in camelCase;
 * `Operations`, the parameters and the results of each operation; and two tables that the client reads at run time, `operations`
 * (method and path) and `shapes` (names on the wire of each schema). */
import { pathToFileURL } from "node:url";

/* Names that would collide with a class of the client, or with a global of the language. */
const RENAMED = {
  Workspace: "WorkspaceInfo",
  Exec: "ExecInfo",
  Result: "ResultInfo",
  Event: "CarrelEvent",
  Node: "NodeWanted",
  Python: "PythonWanted",
  Document: "OpenApiDocument",
  Health: "DaemonHealth",
  Signal: "SignalWanted",
  Size: "TerminalSize",
  Port: "PortInfo",
  Files: "FileInfos",
};

const camel = (name) => name.replace(/[_-]([a-z0-9])/g, (_, letter) => letter.toUpperCase());
const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
const schemaOf = (reference) => reference.split("/").pop();
const typeName = (schema) => RENAMED[schema] ?? schema;

/* A comment that can't be ended by what it quotes. */
function comment(text, indent = "") {
  if (!text) return "";
  return `${indent}/** ${text.trim().replace(/\*\//g, "*\\/").replace(/[{}@]/g, "\\$&").replace(/\s*\n\s*/g, " ")} */\n`;
}

class Generator {
  constructor(document) {
    this.document = document;
    this.shapes = {};
    this.unions = {};
  }

  /* The TypeScript of a schema. `name` is what an object without a name of its own is called in `shapes`. */
  type(schema, name) {
    if (schema.$ref) return typeName(schemaOf(schema.$ref));
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    const choices = schema.anyOf ?? schema.oneOf?.filter((choice) => !isConstraint(choice));
    if (choices?.length) return union(choices.map((choice) => this.type(choice, name)));
    const types = [schema.type ?? (schema.properties ? "object" : undefined)].flat();
    return union(types.map((type) => this.simple(type, schema, name)));
  }

  simple(type, schema, name) {
    switch (type) {
      case "integer":
      case "number":
        return "number";
      case "string":
      case "boolean":
      case "null":
        return type;
      case "array": {
        const items = this.type(schema.items ?? {}, name);
        return /[|]/.test(items) ? `(${items})[]` : `${items}[]`;
      }
      case "object":
        return this.object(schema, name);
      default:
        return "unknown";
    }
  }

  object(schema, name) {
    if (schema.properties && Object.keys(schema.properties).length)
      return `{ ${this.members(schema, name).map((member) => member.text).join("; ")} }`;
    const values = schema.additionalProperties;
    return `Record<string, ${values && typeof values === "object" ? this.type(values, name) : "unknown"}>`;
  }

  /* The fields of an object; notes those whose name or content differs on the wire. */
  members(schema, name) {
    const required = new Set(schema.required ?? []);
    const shape = (this.shapes[name] = {});
    return Object.entries(schema.properties ?? {}).map(([field, of]) => {
      const nested = this.nested(of, `${name}.${field}`);
      if (camel(field) !== field || nested) shape[field] = nested ? [camel(field), nested] : [camel(field)];
      const type = this.type(of, `${name}.${field}`);
      return { text: `${key(camel(field))}${required.has(field) ? "" : "?"}: ${type}`, description: of.description };
    });
  }

  /* The name of the shape of a field's objects, if they have one. Objects of a union share one shape, that of all their fields. */
  nested(schema, name) {
    if (schema.$ref) return schemaOf(schema.$ref);
    if (schema.items) return this.nested(schema.items, name);
    const found = (schema.anyOf ?? schema.oneOf ?? []).map((choice) => this.nested(choice, name)).filter(Boolean);
    if (found.length > 1) this.unions[name] = found;
    if (found.length) return found.length > 1 ? name : found[0];
    return schema.properties && Object.keys(schema.properties).length ? name : undefined;
  }

  interface(name, schema) {
    const title = comment(schema.description || `The schema \`${name}\` of the REST API.`);
    if (!schema.properties || !Object.keys(schema.properties).length) {
      const other = this.nested(schema, name);
      if (other && other !== name) this.unions[name] = [other];
      return `${title}export type ${typeName(name)} = ${this.type(schema, name)};\n`;
    }
    const members = this.members(schema, name).map((member) => `${comment(member.description, "  ")}  ${member.text};\n`);
    return `${title}export interface ${typeName(name)} {\n${members.join("")}}\n`;
  }

  /* [type, row of the table] of an operation. */
  operation(path, method, item) {
    const parameters = (place) => (item.parameters ?? []).filter((parameter) => parameter.in === place);
    const fields = (list) => list.map((one) => `${key(camel(one.name))}${one.required ? "" : "?"}: ${this.type(one.schema, one.name)}`);
    const body = item.requestBody?.content?.["application/json"]?.schema;
    const results = {};
    const types = [];
    for (const [status, response] of Object.entries(item.responses)) {
      const schema = status[0] === "2" && response.content?.["application/json"]?.schema;
      if (!schema) continue;
      const name = this.nested(schema, `${item.operationId}.${status}`);
      if (name) results[status] = name;
      types.push(this.type(schema, `${item.operationId}.${status}`));
    }
    const row = { method: method.toUpperCase(), path };
    if (parameters("header").some((parameter) => parameter.name === "Idempotency-Key")) row.keyed = true;
    if (body) row.body = this.nested(body, `${item.operationId}.body`);
    if (Object.keys(results).length) row.results = results;
    const query = fields(parameters("query"));
    const type = [
      `path: ${braces(fields(parameters("path")))}`,
      `query: ${braces(query)}`,
      `body: ${body ? this.type(body, item.operationId) + (item.requestBody.required ? "" : " | undefined") : "undefined"}`,
      `result: ${types.length ? union(types) : "undefined"}`,
    ];
    return [`${comment(item.summary, "  ")}  ${item.operationId}: { ${type.join("; ")} };\n`, row];
  }

  operations() {
    const types = [];
    const rows = [];
    for (const [path, methods] of Object.entries(this.document.paths)) {
      for (const [method, item] of Object.entries(methods)) {
        /* Pages are for browsers. */
        const isPage = Object.values(item.responses).some((answer) => Object.keys(answer.content ?? {}).some((kind) => kind.startsWith("text/html")));
        if (!item.operationId || isPage) continue;
        const [type, row] = this.operation(path, method, item);
        types.push(type);
        rows.push(`  ${item.operationId}: ${JSON.stringify(row)},\n`);
      }
    }
    return [types.join(""), rows.join("")];
  }

  file() {
    const schemas = Object.entries(this.document.components.schemas).map(([name, schema]) => this.interface(name, schema));
    const [types, rows] = this.operations();
    for (const [name, parts] of Object.entries(this.unions))
      this.shapes[name] = Object.assign({}, ...parts.map((part) => this.shapes[part]));
    const shapes = Object.entries(this.shapes).filter(([, fields]) => Object.keys(fields).length);
    return [
      "/* Generated from /openapi.json by tools/generate.mjs. Do not edit: npm run generate. */\n",
      ...schemas,
      `/** What each operation of the REST API takes and gives. */\nexport interface Operations {\n${types}}\n`,
      "/** A row of {@link operations}. @internal */\n" +
        "export interface OperationRow {\n  method: string;\n  path: string;\n  keyed?: boolean;\n  body?: string;\n" +
        "  results?: Record<string, string>;\n}\n",
      `/** Method and path of each operation. @internal */\nexport const operations: Record<keyof Operations, OperationRow> = {\n${rows}};\n`,
      "/** By schema and name on the wire: the name here, and the schema of the value. @internal */\n" +
        "export const shapes: Record<string, Record<string, [string, string?]>> = {\n" +
        shapes.map(([name, fields]) => `  ${key(name)}: ${JSON.stringify(fields)},\n`).join("") +
        "};\n",
    ].join("\n");
  }
}

/* {required: [...]} alone says which fields exclude each other, not what they are. */
const isConstraint = (schema) => !schema.type && !schema.$ref && !schema.properties && !schema.enum && !schema.anyOf;
const union = (types) => [...new Set(types)].join(" | ");
const braces = (fields) => (fields.length ? `{ ${fields.join("; ")} }` : "object");

/** The text of src/generated.ts. */
export function generate(document) {
  return new Generator(document).file();
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const pieces = [];
  for await (const piece of process.stdin) pieces.push(piece);
  process.stdout.write(generate(JSON.parse(Buffer.concat(pieces).toString())));
}
