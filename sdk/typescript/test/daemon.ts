/* A daemon of a home of its own, which the client starts as it would for a user. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { after } from "node:test";

const program = process.env["CARREL"] ?? new URL("../../../../build/carrel", import.meta.url).pathname;

/** Sets the environment in which `new Carrel()` finds it. Ended after the tests of the file. */
export function ownDaemon(): { home: string; carrel(...args: string[]): string } {
  const home = mkdtempSync("/var/tmp/carrel-sdk.");
  for (const name of ["CARREL_HOST", "CARREL_TOKEN"]) delete process.env[name];
  process.env["CARREL_HOME"] = home;
  process.env["CARREL_PROGRAM"] = program;
  const env = { ...process.env };
  const carrel = (...args: string[]) => execFileSync(program, args, { encoding: "utf8", env });
  after(() => {
    carrel("serve", "--stop", "--force");
    rmSync(home, { recursive: true, force: true });
  });
  return { home, carrel };
}

/** The first of what an iterator gives that is wanted. */
export async function firstOf<T>(values: AsyncIterable<T>, isWanted: (value: T) => boolean): Promise<T> {
  for await (const value of values) if (isWanted(value)) return value;
  throw new Error("it ended before the one that was wanted");
}
