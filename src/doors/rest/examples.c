/* Examples of what is sent and answered, by the name of the schema. Written with ' for ", which the
 * document has; tests/api/test_openapi.py holds each against its schema. */
#include "doors/rest/reference.h"
#include <string.h>

struct example {
	const char *schema, *text;
};

static const struct example examples[] = {
	{ "Workspace", "{'id':'n5fda10efceptk5gu44i','name':'demo','state':'ready','template':null,"
		       "'created_at':'2026-01-02T10:00:00.000Z',"
		       "'last_used_at':'2026-01-02T10:05:00.000Z','expires_at':null,"
		       "'idle_timeout_ms':1800000,'labels':{'team':'data'},'environment':null,"
		       "'env':{'LANG':'C.UTF-8'},'limits':{'memory_bytes':2147483648,"
		       "'disk_bytes':1073741824,'tmp_bytes':1073741824,'pids':1024,'fds':1024,"
		       "'cpus':null,'cpu_time_ms':null,'timeout_ms':null,'output_bytes':null,"
		       "'mechanism':'cgroup-v2'},'network':{'mode':'none','allow':[],'deny':[]},"
		       "'disk_usage_bytes':24576,'disk_limit_mechanism':'counted',"
		       "'isolation':'native','layers_active':['namespaces','own_root',"
		       "'capabilities','no_new_privs','landlock','seccomp','limits'],'warm':true,"
		       "'ptrace':false,'view':'workspace','snapshot':null,'error':null}" },
	{ "WorkspaceWanted", "{'name':'demo','python':{'version':'3.12','packages':['pandas>=2']},"
			     "'limits':{'memory':'2G','cpus':2},'network':{'mode':'list',"
			     "'allow':['example.com']},'labels':{'team':'data'},'ttl':'7d',"
			     "'idle_timeout':1800}" },
	{ "WorkspaceChange", "{'labels':{'team':'ml'},'limits':{'memory':'4G'},'ttl':'30d'}" },
	{ "Limits", "{'memory_bytes':2147483648,'disk_bytes':1073741824,'tmp_bytes':1073741824,"
		    "'pids':1024,'fds':1024,'cpus':2,'cpu_time_ms':null,'timeout_ms':null,"
		    "'output_bytes':null,'mechanism':'cgroup-v2'}" },
	{ "Suspend", "{'force':true}" },
	{ "WorkspaceHealth",
		"{'workspace':'n5fda10efceptk5gu44i','name':'demo','state':'ready',"
		"'healthy':true,'configured':true,'python_venv':true,"
		"'python_deps_installed':true,'node_modules':false,"
		"'node_deps_installed':false,'disk_usage':24576,'disk_limit':1073741824,"
		"'disk_limit_mechanism':'counted','environment':'py312-4f1c',"
		"'node_environment':null,'environment_layers':3,'snapshot_layers':0,"
		"'deep':false,'layers_active':['namespaces','seccomp'],'issues':[]}" },
	{ "WorkspaceRepair",
		"{'done':['made the link .venv to /env again'],'failed':[],"
		"'health':{'workspace':'n5fda10efceptk5gu44i','name':'demo','state':'ready',"
		"'healthy':true,'configured':true,'python_venv':true,"
		"'python_deps_installed':true,'node_modules':false,"
		"'node_deps_installed':false,'disk_usage':24576,'disk_limit':1073741824,"
		"'disk_limit_mechanism':'counted','environment':'py312-4f1c',"
		"'node_environment':null,'environment_layers':3,'snapshot_layers':0,"
		"'deep':false,'layers_active':['namespaces','seccomp'],'issues':[]}}" },
	{ "IsolationVerdict",
		"{'workspace':'n5fda10efceptk5gu44i','name':'demo','ok':true,"
		"'inside_trusted':true,'layers':[{'name':'seccomp','ok':true,"
		"'seen_from':'outside','detail':'as expected in all processes (2)'}]}" },
	{ "WorkspaceMetrics",
		"{'id':'n5fda10efceptk5gu44i','name':'demo','state':'running','warm':true,"
		"'measured_at':'2026-01-02T10:00:00.000Z','cpu_ms':1290,'cpu_percent':87.5,"
		"'memory_bytes':94371840,'memory_limit_bytes':2147483648,'pids':4,"
		"'pids_limit':1024,'disk_usage_bytes':24576,'disk_limit_bytes':1073741824,"
		"'execs':1}" },
	{ "ExecWanted",
		"{'argv':['python3','-c','print(6 * 7)'],'cwd':'data','env':{'MODE':'fast'},"
		"'timeout':30}" },
	{ "Result", "{'id':'6d4movne3jo59dg146fb','exit_code':0,'signal':null,'reason':'exited',"
		    "'stdout':'42\\n','stderr':'','encoding':'utf-8','truncated':false,"
		    "'duration_ms':12,'cpu_ms':9,'max_rss_bytes':9437184,'limits':'cgroup-v2'}" },
	{ "CodeWanted", "{'file':'fib.py','code':'def fib(n): return n if n < 2 else fib(n - 1) + "
			"fib(n - 2)\\nprint(fib(10))\\n','tests':'from fib import fib\\n\\n\\ndef "
			"test_fib():\\n    assert fib(10) == 55\\n'}" },
	{ "CodeResult", "{'id':'6d4movne3jo59dg146fb','exit_code':0,'signal':null,"
			"'reason':'exited','stdout':'55\\n','stderr':'','encoding':'utf-8',"
			"'truncated':false,'duration_ms':12,'cpu_ms':9,'max_rss_bytes':9437184,"
			"'limits':'cgroup-v2','tests':{'verdict':'passed','result':{'id':"
			"'7d4movne3jo59dg146fb','exit_code':0,'signal':null,'reason':'exited',"
			"'stdout':'1 passed in 0.01s\\n','stderr':'','encoding':'utf-8',"
			"'truncated':false,'duration_ms':212,'cpu_ms':190,"
			"'max_rss_bytes':39437184,'limits':'cgroup-v2'}}}" },
	{ "ToolWanted", "{'name':'slug','code':'def run(text):\\n    return text.lower()\\n',"
			"'tests':'import tool\\n\\n\\ndef test_slug():\\n    assert "
			"tool.run(1) == 1\\n','requires':['python-slugify'],'ttl':'7d'}" },
	{ "Tool", "{'id':'n5fda10efceptk5gu44i','name':'slug','version':2,'state':'active',"
		  "'package':null,'description':'Makes slugs of titles','requires':['python-"
		  "slugify'],'python':null,'environment':'py312-4f1c','workspace':"
		  "'6d4movne3jo59dg146fb','passed':true,'error':null,'sha256':"
		  "'9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08','forge_ms':"
		  "412,'ttl_ms':86400000,'created_at':'2026-01-02T10:00:00.000Z','changed_at':"
		  "'2026-01-02T10:00:01.000Z','expires_at':null,'network':{'mode':'none','allow':"
		  "[],'deny':[]}}" },
	{ "ToolSpec", "{'name':'slug','description':'Makes slugs of titles','arguments':{'text':"
		      "'A title'},'requires':['python-slugify']}" },
	{ "ToolSource", "{'name':'slug','code':'def run(text):\\n    return text\\n','tests':"
			"'import tool\\n\\n\\ndef test_slug():\\n    assert tool.run(1) == "
			"1\\n','requires':['python-slugify'],'generated':true}" },
	{ "ToolCall", "{'arguments':{'text':'A title'},'timeout':30}" },
	{ "ToolResult", "{'tool':'slug','version':2,'ok':true,'result':'a-title','error':null,"
			"'stdout':'','stderr':'','encoding':'utf-8','duration_ms':31}" },
	{ "ToolRollback", "{'version':1}" },
	{ "Exec", "{'id':'prfv370bg4v8fhatc0c8','workspace':'n5fda10efceptk5gu44i',"
		  "'state':'ended','argv':['python3','train.py'],'cwd':'/workspace',"
		  "'background':true,'tty':false,'started_at':'2026-01-02T10:00:00.000Z',"
		  "'ended_at':'2026-01-02T10:00:02.500Z','exit_code':0,'signal':null,"
		  "'reason':'exited','output_bytes':1841,'output_dropped_bytes':0,'duration_ms':"
		  "2500,'cpu_ms':2310,"
		  "'max_rss_bytes':48234496,'error':null}" },
	{ "ApprovalRequired",
		"{'type':'about:blank','title':'Accepted','status':202,"
		"'code':'approval_required','detail':'exec waits for an approval',"
		"'hint':'GET /v1/approvals/c8v0e2d1s9k4m7q3b6n5',"
		"'request_id':'am6av8hc000000000002','exit_code':126,"
		"'exec':'prfv370bg4v8fhatc0c8','approval':{'id':'c8v0e2d1s9k4m7q3b6n5',"
		"'workspace':'n5fda10efceptk5gu44i','workspace_name':'demo',"
		"'exec':'prfv370bg4v8fhatc0c8','state':'pending','argv':['git','push'],"
		"'cwd':null,'env':{},'stdin':null,'open_stdin':false,'tty':false,"
		"'encoding':'utf-8','trail':[{'subject':'git push',"
		"'rule':'Bash(git push:*)','reason':null,'decision':'ask'}],"
		"'trail_truncated':false,'requested_by':'uid 1000',"
		"'created_at':'2026-01-02T10:00:00.000Z',"
		"'expires_at':'2026-01-02T10:15:00.000Z','answered_at':null,"
		"'answered_by':null,'note':null,'rules':[],"
		"'suggested_rules':['Bash(git push)'],'always_refused':null}}" },
	{ "Signal", "{'signal':'TERM'}" },
	{ "Size", "{'rows':40,'columns':120}" },
	{ "FileInfo", "{'name':'train.py','type':'file','size':1841,'mode':'0644',"
		      "'modified_at':'2026-01-02T10:00:00.000Z','link':null}" },
	{ "FileAnswer",
		"{'items':[{'name':'train.py','type':'file','size':1841,'mode':'0644',"
		"'modified_at':'2026-01-02T10:00:00.000Z','link':null}],'next_cursor':null}" },
	{ "Change", "{'path':'data/out.csv','change':'A','type':'file','size_before':null,"
		    "'size_after':4096}" },
	{ "ApplyWanted", "{'to':'main','paths':['src'],'dry_run':true}" },
	{ "Applied", "{'applied':1,'conflicts':0,'changes':[{'path':'src/a.py','change':'M',"
		     "'type':'file','result':'applied','reason':null}]}" },
	{ "Snapshot", "{'id':'s1s25urtifvfsii9o731','workspace':'n5fda10efceptk5gu44i',"
		      "'workspace_name':'demo','version':1,'tag':'v1','note':null,"
		      "'created_at':'2026-01-02T10:00:00.000Z','size_bytes':24576,"
		      "'layers':['snap-j79ahjda7nhs19jri8d7'],'environment':null,"
		      "'view':'workspace','automatic':false,'kept':false,'content_id':null}" },
	{ "SnapshotWanted", "{'tag':'v1','note':'before the upgrade'}" },
	{ "SnapshotVerdict",
		"{'snapshot':'s1s25urtifvfsii9o731','ok':true,"
		"'layers':[{'name':'snap-j79ahjda7nhs19jri8d7','content_id':'sha256-4f1c',"
		"'problem':null}]}" },
	{ "RollbackWanted", "{'snapshot':'v1'}" },
	{ "ForkWanted", "{'name':'try','count':3,'snapshot':'v1'}" },
	{ "PushWanted", "{'snapshot':'v1'}" },
	{ "Push", "{'snapshot':'s1s25urtifvfsii9o731','workspace':'demo',"
		  "'key':'snapshots/demo/1.json','layers':2,'sent_layers':1,'sent_bytes':18231}" },
	{ "PullWanted", "{'workspace':'demo','snapshot':'v1'}" },
	{ "Environment",
		"{'name':'py312-4f1c','package_id':null,'state':'ready',"
		"'created_at':'2026-01-02T10:00:00.000Z',"
		"'last_used_at':'2026-01-02T10:05:00.000Z','use_count':4,"
		"'size_bytes':63963136,'kind':'python','python_version':'3.12.7',"
		"'node_version':null,'installed_packages':{'pandas':'2.2.3'},'in_use':true,"
		"'problem':null}" },
	{ "PackagesWanted", "{'packages':['requests>=2.32','rich'],'kind':'python'}" },
	{ "PackagesChanged", "{'environment':'py312-4f1c','installed':[{'name':'rich',"
			     "'version':'13.9.4'}],'removed':[],'live':true,'persisted':true}" },
	{ "Package", "{'name':'pandas','version':'2.2.3','kind':'python','requested':true,"
		     "'source':'environment'}" },
	{ "TemplateAdded", "{'template':{'name':'web','python':{'dependencies':['flask>=3']},"
			   "'limits':{'memory':'1G'}}}" },
	{ "Template", "{'version':'1.0','name':'web','origin':'added','description':'Flask',"
		      "'python':{'dependencies':['flask>=3']},'nodejs':{},'system':{},"
		      "'security':{},'limits':{'memory_bytes':1073741824,'disk_bytes':null,"
		      "'tmp_bytes':null,'pids':null,'fds':null,'cpus':null,'cpu_time_ms':null,"
		      "'timeout_ms':null,'output_bytes':null,'mechanism':null},'network':{},"
		      "'env':{},'files':{},"
		      "'sha256':'093eb29096bb2f6d0da098cf0ea718cfce43c9aed1e3bfdacac38a6f1412712d',"
		      "'warnings':[]}" },
	{ "Tree", "{'name':'datasets','workspaces':['demo']}" },
	{ "TreeWanted", "{'name':'datasets'}" },
	{ "Archive", "{'name':'demo-20260102-100000','workspace':'demo','format':'tar.zst',"
		     "'created_at':'2026-01-02T10:00:00.000Z','size_bytes':18231}" },
	{ "RestoreWanted", "{'name':'demo-again'}" },
	{ "Export", "{'name':'py312-4f1c.tar','created_at':'2026-01-02T10:00:00.000Z',"
		    "'size_bytes':18231000}" },
	{ "Approval", "{'id':'c8v0e2d1s9k4m7q3b6n5','workspace':'n5fda10efceptk5gu44i',"
		      "'workspace_name':'demo','exec':'prfv370bg4v8fhatc0c8','state':'pending',"
		      "'argv':['git','push'],'cwd':null,'env':{},'stdin':null,"
		      "'open_stdin':false,'tty':false,'encoding':'utf-8',"
		      "'trail':[{'subject':'git push','rule':'Bash(git push:*)','reason':null,"
		      "'decision':'ask'}],'trail_truncated':false,'requested_by':'uid 1000',"
		      "'created_at':'2026-01-02T10:00:00.000Z',"
		      "'expires_at':'2026-01-02T10:15:00.000Z','answered_at':null,"
		      "'answered_by':null,'note':null,'rules':[],"
		      "'suggested_rules':['Bash(git push)'],'always_refused':null}" },
	{ "ApprovalAnswer", "{'decision':'approve','note':'once'}" },
	{ "Token", "{'id':'48qtd6olg40ies2t9oqd','name':'ci','scope':'user','workspace':null,'"
		   "workspace_name':null,"
		   "'created_by':'uid 0','created_at':'2026-01-02T10:00:00.000Z',"
		   "'expires_at':'2026-02-01T10:00:00.000Z','last_used_at':null}" },
	{ "AgentAdded", "{'yaml':'name: tools\\ndescription: runs commands\\nversion: v1\\n"
			"kind: shell\\n'}" },
	{ "Agent", "{'id':'48qtd6olg40ies2t9oqd','name':'tools',"
		   "'created_at':'2026-01-02T10:00:00.000Z','version':'v1',"
		   "'description':'runs "
		   "commands','default':false,'skills':[],'extended':null,'kind':'shell',"
		   "'template':null,'limits':{'memory_bytes':null,'disk_bytes':null,"
		   "'tmp_bytes':null,'pids':null,'fds':null,'cpus':null,'cpu_time_ms':null,"
		   "'timeout_ms':null,'output_bytes':null,'mechanism':null},"
		   "'timeout_ms':300000,'ttl_ms':604800000,'namespace':null,'auth':'token',"
		   "'approver':'client','workspace_without_context':false,"
		   "'max_contexts':256,'max_tasks':32,'push':null,"
		   "'yaml':'name: tools\\ndescription: runs commands\\nversion: v1\\n"
		   "kind: shell\\n'}" },
	{ "TokenWanted", "{'name':'ci','scope':'user','ttl':'30d'}" },
	{ "Case", "{'id':'c1s25urtifvfsii9o731','name':'fix-slug','state':'created',"
		  "'description':null,'source':'../site','workspace':'n5fda10efceptk5gu44i',"
		  "'snapshot':null,'keep':false,'ttl_ms':3600000,'reason':null,'error':null,'steps'"
		  ":[],"
		  "'variables':{},'created_at':'2026-01-02T10:00:00.000Z',"
		  "'last_used_at':'2026-01-02T10:00:00.000Z','cells':0}" },
	{ "CaseWanted", "{'yaml':'id: fix-slug\\nsource: ../site\\nharness: python3 fix.py\\n"
			"graders:\\n- {type: pytest}\\n','file':'fix-slug.yaml'}" },
	{ "Cell", "{'id':'d8v0e2d1s9k4m7q3b6n5','case':'c1s25urtifvfsii9o731',"
		  "'state':'passed','case_name':'fix-slug','repeat':1,'reason':null,"
		  "'error':null,'workspace':null,'duration_ms':512,"
		  "'steps':[{'type':'harness','name':'harness','command':'python3 fix.py',"
		  "'passed':true,'exit_code':0,'reason':'exited','duration_ms':80,'output':'',"
		  "'truncated':false}],'diff':'','diff_truncated':false,"
		  "'variables':{'PATH':'/env/bin:/usr/bin:/bin','CARREL_CASE':'fix-slug'},"
		  "'created_at':'2026-01-02T10:00:00.000Z',"
		  "'started_at':'2026-01-02T10:00:00.100Z',"
		  "'ended_at':'2026-01-02T10:00:00.612Z'}" },
	{ "CellWanted", "{'repeat':2}" },
	{ "DeploymentWanted", "{'agentAppId':'greeter','version':'1.0.0'}" },
	{ "Deployment",
		"{'deploymentId':'48qtd6olg40ies2t9oqd','name':'greeter','status':'healthy',"
		"'agentAppId':'greeter','version':'1.0.0','packageUrl':'blob:greeter@1.0.0',"
		"'sha256':null,'revision':1,'error':null,"
		"'created_at':'2026-01-02T10:00:00.000Z','updated_at':'2026-01-02T10:00:01.000Z',"
		"'rollout':{'revision':1,'version':'1.0.0','status':'healthy','error':null},"
		"'venv':null,'surfaces':[]}" },
	{ "Port", "{'port':8000,'address':'127.0.0.1'}" },
	{ "Health", "{'status':'ok'}" },
	{ "Document", "{'openapi':'3.1.0'}" },
	{ "Event", "{'type':'workspace.created','id':1794856051601,"
		   "'time':'2026-01-02T10:00:00.000Z','workspace':'n5fda10efceptk5gu44i',"
		   "'name':'demo'}" },
	{ "ExecEvent", "{'type':'stdout','data':'42\\n','encoding':'utf-8'}" },
	{ "OutputEvent", "{'type':'stdout','data':'epoch 1\\n','encoding':'utf-8'}" },
	{ "AuditLine", "{'seq':2,'time':'2026-01-02T10:00:00.000Z','type':'workspace.create',"
		       "'principal':'uid 1000','workspace':'n5fda10efceptk5gu44i',"
		       "'workspace_name':'demo','request_id':'am6av8hc000000000002','door':'rest',"
		       "'data':{},'prev':'3181db74','hash':'3a53d862'}" },
	{ "Problem", "{'type':'about:blank','title':'Not Found','status':404,'code':'not_found',"
		     "'detail':'no workspace demo','hint':'GET /v1/workspaces lists them',"
		     "'request_id':'am6av8hc000000000002'}" },
};

/* As they are sent. */
static const struct example streams[] = {
	{ "ExecEvent", "event: start\n"
		       "data: {'type':'start','id':'6d4movne3jo59dg146fb'}\n"
		       "\n"
		       "event: stdout\n"
		       "data: {'type':'stdout','data':'42\\n','encoding':'utf-8'}\n"
		       "\n"
		       "event: exit\n"
		       "data: {'type':'exit','id':'6d4movne3jo59dg146fb','exit_code':0,"
		       "'signal':null,'reason':'exited','stdout':'','stderr':'','encoding':'utf-8',"
		       "'truncated':false,'duration_ms':12,'cpu_ms':9,'max_rss_bytes':9437184,"
		       "'limits':'cgroup-v2'}\n"
		       "\n" },
	{ "OutputEvent", "event: stdout\n"
			 "data: {'type':'stdout','data':'epoch 1\\n','encoding':'utf-8'}\n"
			 "\n"
			 "event: exit\n"
			 "data: {'type':'exit','id':'prfv370bg4v8fhatc0c8',"
			 "'workspace':'n5fda10efceptk5gu44i','state':'ended','argv':['python3',"
			 "'train.py'],'cwd':'/workspace','background':true,'tty':false,"
			 "'started_at':'2026-01-02T10:00:00.000Z',"
			 "'ended_at':'2026-01-02T10:00:02.500Z','exit_code':0,'signal':null,"
			 "'reason':'exited','output_bytes':1841,'output_dropped_bytes':0,'duration_"
			 "ms':2500,'cpu_ms':2310,"
			 "'max_rss_bytes':48234496,'error':null}\n"
			 "\n" },
	{ "Event", "id: 1794856051601\n"
		   "event: workspace.created\n"
		   "data: {'id':1794856051601,'type':'workspace.created',"
		   "'time':'2026-01-02T10:00:00.000Z','workspace':'n5fda10efceptk5gu44i',"
		   "'name':'demo'}\n"
		   "\n" },
	{ "AuditLine", "id: 2\n"
		       "event: audit\n"
		       "data: {'seq':2,'time':'2026-01-02T10:00:00.000Z','type':'workspace.create',"
		       "'principal':'uid 1000','workspace':'n5fda10efceptk5gu44i',"
		       "'workspace_name':'demo','request_id':'am6av8hc000000000002','door':'rest',"
		       "'data':{},'prev':'3181db74','hash':'3a53d862'}\n"
		       "\n" },
};

static const char *find(const struct example *list, size_t count, const char *schema)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i].schema, schema))
			return list[i].text;
	return NULL;
}

const char *example_of(const char *schema)
{
	return find(examples, sizeof examples / sizeof *examples, schema);
}

const char *stream_example_of(const char *schema)
{
	return find(streams, sizeof streams / sizeof *streams, schema);
}
