/* Operations on code that is run once. */
#include "model/agents/code.h"
#include "model/operations/operation.h"

static const struct operation operations[] = {
	{ "POST", "/v1/code", "runCode", "code run", VERB_CODE_RUN,
		.summary =
			"Run a file of Python or shell, and its tests, in a throw-away workspace",
		.more = "A workspace is made for it, and removed before the answer. Tests run when "
			"the code has exited with 0: `.py` by pytest, which is installed for them, "
			"`.sh` by a shell. Output of more than 8 MB ends a command with reason "
			"output_limit.",
		TAKES(code_wanted_record, struct code_wanted),
		SHOWN(code_result_schema, "The code has ended, and its tests, and the workspace is "
					  "removed. A client that disconnects before ends both."),
		.errors = { 404, 409, 429, 507 } },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "CodeWanted",
		"{'file':'fib.py',"
		"'code':'def fib(n): return n if n < 2 else fib(n - 1) + fib(n - "
		"2)\\nprint(fib(10))\\n',"
		"'tests':'from fib import fib\\n\\n\\ndef test_fib():\\n    assert fib(10) == "
		"55\\n'}" },
	{ "CodeResult",
		"{'id':'6d4movne3jo59dg146fb','exit_code':0,'signal':null,'reason':'exited',"
		"'stdout':'55\\n','stderr':'','encoding':'utf-8','truncated':false,"
		"'duration_ms':12,'cpu_ms':9,'max_rss_bytes':9437184,'limits':'cgroup-v2',"
		"'tests':{'verdict':'passed','result':{'id':'7d4movne3jo59dg146fb','exit_code':0,"
		"'signal':null,'reason':'exited','stdout':'1 passed in 0.01s\\n','stderr':'',"
		"'encoding':'utf-8','truncated':false,'duration_ms':212,'cpu_ms':190,"
		"'max_rss_bytes':39437184,'limits':'cgroup-v2'}}}" },
	{ 0 },
};

const struct operation_table code_operations = { "tools", operations, examples };
