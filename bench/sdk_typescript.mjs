/* sdk_typescript.mjs SOCKET WORKSPACE ROUNDS CALLS: prints {"client": ns, "raw": ns} for each round, medians of a call. Both go over TCP,
 * $BENCH_URL with $BENCH_TOKEN: fetch can't reach a unix socket. $BENCH_SDK is the compiled client. */
const { BENCH_URL: host, BENCH_TOKEN: token, BENCH_SDK: sdk } = process.env;
const [workspace, rounds, calls] = [process.argv[3], Number(process.argv[4]), Number(process.argv[5])];
const { Carrel } = await import(sdk);
const argv = ["/bin/true"];
const found = await new Carrel({ host, token }).get(workspace);
const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };

async function byClient() {
  if ((await found.exec(argv)).exitCode !== 0) throw new Error("the command failed");
}

async function byLibrary() {
  const response = await fetch(`${host}/v1/workspaces/${workspace}/exec`, { method: "POST", headers, body: JSON.stringify({ argv }) });
  if ((await response.json()).exit_code !== 0) throw new Error("the command failed");
}

async function medianNs(call) {
  const times = [];
  for (let i = 0; i < calls; i++) {
    const before = process.hrtime.bigint();
    await call();
    times.push(Number(process.hrtime.bigint() - before));
  }
  return times.sort((a, b) => a - b)[calls >> 1];
}

for (let i = 0; i < rounds; i++) console.log(JSON.stringify({ client: await medianNs(byClient), raw: await medianNs(byLibrary) }));
