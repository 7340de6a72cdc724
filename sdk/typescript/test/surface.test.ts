/* The client has all that the REST API has, and says so. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Carrel } from "../src/index.js";
import { operations } from "../src/generated.js";
import { ownDaemon } from "./daemon.js";

ownDaemon();
const root = new URL("../../", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), "utf8");

test("the generated types are those of the daemon", async () => {
  const { generate } = (await import(new URL("tools/generate.mjs", root).href)) as { generate(document: unknown): string };
  assert.equal(generate(await new Carrel().openapi()), read("src/generated.ts"), "npm run generate writes src/generated.ts anew");
});

test("every operation has a method", () => {
  const sources = readdirSync(new URL("src/", root)).filter((name) => name !== "generated.ts");
  const code = sources.map((name) => read(`src/${name}`)).join("\n");
  const missing = Object.keys(operations).filter((name) => !new RegExp(`"${name}"|operations\\.${name}\\b`).test(code));
  assert.deepEqual(missing, []);
});

test("public types have no any, and every public symbol is described", () => {
  const files = readdirSync(new URL("dist/src/", root)).filter((name) => name.endsWith(".d.ts") && name !== "generated.d.ts");
  const bare: string[] = [];
  for (const name of [...files, "generated.d.ts"]) {
    const lines = read(`dist/src/${name}`).split("\n");
    for (const [at, line] of lines.entries()) {
      /* A program that knows no types of Node can use them. */
      if (!["node.d.ts", "dispose.d.ts"].includes(name)) assert.doesNotMatch(line, /node:|NodeJS|Buffer\b(?<!ArrayBuffer)|reference types/, name);
      assert.doesNotMatch(line, /[^\w]any\b(?!.*\*\/)/, `${name}: ${line}`);
      const isSymbol = /^export (declare )?(class|interface|type \w+ |const|function)|^ {4}(static |readonly |get |async )*[\w[][\w.\]]*[?(:<]/.test(line);
      const isHidden = /^ {4}(private|constructor)|^export (type )?[{*]/.test(line) || /\[Symbol\.asyncDispose\]/.test(line);
      if (name !== "generated.d.ts" && isSymbol && !isHidden && !/\*\/$/.test(lines[at - 1] ?? "")) bare.push(`${name}: ${line.trim()}`);
    }
  }
  assert.deepEqual(bare, []);
});
