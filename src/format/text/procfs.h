/* procfs.h -- the kernel's text files taken apart. Pure: text in, values out. Text may hold hostile
 * names (a process chooses its comm, a mount its path): each parser says what it does with them.
 * Walkers (procfs_next_…) pass over lines that aren't of their kind; outputs are untouched when
 * false. */
#pragma once
#include "base/str.h"

/* One process of /proc/<pid>/stat; comm may hold spaces and parentheses. false when it isn't such a
 * line. */
struct procfs_stat {
	int pid, ppid;
	char state;
	uint64_t utime_ticks, stime_ticks, cutime_ticks, cstime_ticks, start_ticks;
};
bool procfs_parse_stat(struct str text, struct procfs_stat *out);

/* The value in kB of `key` ("RssAnon") in /proc/<pid>/status or smaps_rollup text; false when
 * absent. */
bool procfs_find_kb(struct str text, const char *key, uint64_t *kb);
/* The number after `key` in "key number" lines (memory.events, memory.oom_control, cpu.stat); with
 * key NULL the whole text is the number. false when absent. */
bool procfs_find_number(struct str text, const char *key, uint64_t *value);

/* Walks /proc/self/mountinfo: next mount of *rest; octal escapes stay as they are. */
struct procfs_mount {
	struct str root, target, options, type, source, super_options;
	bool is_shared;
};
bool procfs_next_mount(struct str *rest, struct procfs_mount *out);

/* Walks /proc/self/cgroup: "4:memory:/a/b"; controllers is empty for the v2 line. */
struct procfs_cgroup {
	struct str hierarchy, controllers, path;
};
bool procfs_next_cgroup(struct str *rest, struct procfs_cgroup *out);
/* Walks /proc/self/uid_map: "inside outside count". */
struct procfs_id_range {
	uint64_t inside, outside, count;
};
bool procfs_next_id_range(struct str *rest, struct procfs_id_range *out);
/* Walks /proc/net/tcp or tcp6: next socket that listens. */
struct procfs_listener {
	uint8_t address[16]; /* of tcp: the first four; as inet_ntop takes them */
	uint16_t port;
	uint64_t inode;
};
bool procfs_next_listener(struct str *rest, struct procfs_listener *out);
/* `word` among comma-separated words ("cpu,cpuacct"). */
bool procfs_has_word(struct str words, const char *word);
