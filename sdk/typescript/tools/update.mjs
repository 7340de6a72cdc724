#!/usr/bin/env node
/* Writes src/generated.ts from the /openapi.json of a daemon of $CARREL, or ../../build/carrel, that it starts and ends. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { generate } from "./generate.mjs";

const carrel = process.env.CARREL ?? new URL("../../../build/carrel", import.meta.url).pathname;
const home = mkdtempSync("/var/tmp/carrel-sdk.");
const env = { ...process.env, CARREL_HOME: home };
execFileSync(carrel, ["serve", "--background"], { env, stdio: "inherit" });
try {
  const text = await new Promise((resolve, reject) => {
    const request = http.get({ socketPath: `${home}/run/carrel.sock`, path: "/openapi.json" }, (response) => {
      let body = "";
      response.on("data", (piece) => (body += piece)).on("end", () => resolve(body));
    });
    request.on("error", reject);
  });
  writeFileSync(new URL("../src/generated.ts", import.meta.url), generate(JSON.parse(text)));
} finally {
  execFileSync(carrel, ["serve", "--stop", "--force"], { env });
  rmSync(home, { recursive: true, force: true });
}
