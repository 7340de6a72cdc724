#include "audit/verify.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include "audit/files.h"
#include "base/fd.h"
#include "format/text/json_read.h"

#define READ_BYTES (256u << 10)
#define FINDINGS_MAX 1000
#define TRIES_MAX 3

const char *const audit_finding_names[FINDING_KIND_COUNT] = { "changed", "unlinked", "gap",
	"removed_file", "cut", "reordered", "malformed", "head", "against", "torn", "unsigned",
	"pruned", "recorded" };

struct range {
	uint64_t from, to;
	size_t finding;
};
struct check {
	int dir;
	struct arena *arena;
	struct audit_verified *out;
	const struct audit_link *against;
	struct audit_link last; /* seq 0: no line yet */
	bool is_linked;		/* last.hash is what the next line must name */
	char file[AUDIT_NAME_LEN + 1];
	uint64_t line;
	VEC(struct range) gaps;
	/* A line that can't be read, until the next one explains it. */
	uint64_t odd_line, odd_bytes;
	bool is_first_of_file, is_live, has_seen_head, has_seen_against;
};

static struct audit_finding *verify_add(
	struct check *c, enum audit_finding_kind kind, uint64_t seq, const char *text)
{
	struct audit_verified *out = c->out;
	static struct audit_finding spare;
	if (!audit_finding_is_note(kind))
		out->problem_count++;
	if (out->findings.count >= FINDINGS_MAX)
		return &spare;
	struct audit_finding finding = {
		.kind = kind, .line = c->line, .seq = seq, .last_seq = seq, .text = text
	};
	memcpy(finding.file, c->file, sizeof finding.file);
	vec_push(c->arena, &out->findings, finding);
	return &out->findings.items[out->findings.count - 1];
}

static const char *lines_text(struct check *c, uint64_t from, uint64_t to, const char *what)
{
	return from == to ? arena_printf(c->arena, "line %llu %s", (unsigned long long)from, what)
			  : arena_printf(c->arena, "lines %llu to %llu %s",
				    (unsigned long long)from, (unsigned long long)to, what);
}

static void add_gap(struct check *c, uint64_t from, uint64_t to)
{
	enum audit_finding_kind kind = c->is_first_of_file ? FINDING_FILE : FINDING_GAP;
	struct audit_finding *finding = verify_add(c, kind, from,
		lines_text(c, from, to,
			kind == FINDING_FILE ? "are missing: a file was removed" : "missing here"));
	finding->last_seq = to;
	struct range range = { from, to, c->out->findings.count - 1 };
	vec_push(c->arena, &c->gaps, range);
}

/* A line that comes too late: if it closes a gap, the lines were only moved. */
static void add_late(struct check *c, uint64_t seq)
{
	for (size_t i = 0; i < c->gaps.count; i++) {
		struct range *gap = &c->gaps.items[i];
		if (seq < gap->from || seq > gap->to)
			continue;
		struct audit_finding *finding = &c->out->findings.items[gap->finding];
		if (finding->kind != FINDING_REORDERED) {
			finding->kind = FINDING_REORDERED;
			finding->text =
				lines_text(c, gap->from, gap->to, "not here: lines were reordered");
		}
		return;
	}
	verify_add(c, FINDING_REORDERED, seq,
		arena_printf(c->arena, "line %llu follows line %llu: reordered, or there twice",
			(unsigned long long)seq, (unsigned long long)c->last.seq));
}

/* ---- records that explain ---- */

static uint64_t member(const struct json_value *data, const char *key)
{
	uint64_t value = 0;
	return json_member_u64(data, key, &value) ? value : 0;
}

static void read_recovery(struct check *c, struct str text, uint64_t seq)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *value;
	struct error ignored;
	if (json_read(text, &arena, &value, &ignored))
		return;
	const struct json_value *data = json_member(value, "data");
	const char *damage = json_member_text(data, "damage");
	uint64_t torn = member(data, "torn_bytes"), from = member(data, "missing_from"),
		 to = member(data, "missing_to");
	if (c->odd_line && torn == c->odd_bytes) {
		uint64_t line = c->line;
		c->line = c->odd_line;
		verify_add(c, NOTE_TORN, 0,
			arena_printf(c->arena, "%llu bytes of a line that was torn by a crash",
				(unsigned long long)torn));
		c->line = line;
		c->odd_line = 0;
	}
	if (from)
		verify_add(c, NOTE_RECORDED, seq,
			lines_text(c, from, to, "were missing when the daemon was started"));
	if (damage)
		verify_add(c, NOTE_RECORDED, seq,
			arena_printf(
				c->arena, "the daemon found, when it was started: %s", damage));
}

static void settle_odd(struct check *c)
{
	uint64_t line = c->line;
	if (!c->odd_line)
		return;
	c->line = c->odd_line;
	verify_add(c, FINDING_MALFORMED, 0, "not a line of the log: changed, or added");
	c->line = line;
	c->odd_line = 0;
}

/* ---- one line ---- */

static void check_kept(struct check *c, const struct audit_line *line)
{
	const struct audit_head *head = &c->out->head;
	if (line->link.seq == head->last.seq && c->out->head_state >= HEAD_UNCHECKED) {
		c->has_seen_head = true;
		if (strcmp(line->link.hash, head->last.hash))
			verify_add(c, FINDING_HEAD, line->link.seq,
				"not the line that was signed: the log was rewritten");
	}
	if (c->against && line->link.seq == c->against->seq) {
		c->has_seen_against = true;
		if (strcmp(line->link.hash, c->against->hash))
			verify_add(c, FINDING_AGAINST, line->link.seq,
				"not the line whose hash was given: the log was rewritten");
	}
}

static void check_line(struct check *c, struct str text)
{
	struct audit_line line;
	c->line++;
	if (!audit_line_read(text, &line)) {
		settle_odd(c);
		c->odd_line = c->line;
		c->odd_bytes = text.len;
		return;
	}
	if (str_is(audit_line_type(text), "audit.recovered") && line.is_hash_right)
		read_recovery(c, text, line.link.seq);
	settle_odd(c);
	uint64_t seq = line.link.seq;
	bool is_next = !c->last.seq || seq == c->last.seq + 1;
	if (!line.is_hash_right)
		verify_add(
			c, FINDING_CHANGED, seq, "the line was changed: its hash is not its own");
	if (seq > c->last.seq + 1 && c->last.seq)
		add_gap(c, c->last.seq + 1, seq - 1);
	else if (c->last.seq && seq <= c->last.seq) {
		add_late(c, seq);
		c->is_linked = false; /* the line behind it is linked to another */
		c->out->lines++;
		return;
	}
	if (is_next && c->is_linked && memcmp(line.prev.data, c->last.hash, AUDIT_HASH_LEN))
		verify_add(c, FINDING_UNLINKED, seq,
			"not linked to the line before: one of them was replaced");
	check_kept(c, &line);
	c->last = line.link;
	c->is_linked = true;
	c->is_first_of_file = false;
	c->out->lines++;
	if (!c->out->first_seq)
		c->out->first_seq = seq;
}

/* ---- files ---- */

static int check_file(struct check *c, const char *name, bool is_last, struct error *err)
{
	auto_close int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_buf struct buf text = buf_empty(AUDIT_LINE_MAX + 2 * READ_BYTES);
	ssize_t len;
	if (fd < 0)
		return fail_errno(err, "open 'audit/%s'", name);
	str_copy(c->file, sizeof c->file, name);
	c->line = 0;
	c->is_first_of_file = true;
	c->out->files++;
	do {
		char *room = buf_reserve(&text, READ_BYTES);
		len = room ? read(fd, room, READ_BYTES) : 0;
		if (len < 0)
			return fail_errno(err, "read 'audit/%s'", name);
		buf_grew(&text, (size_t)len);
		struct str rest = { text.data, text.len }, line, tail;
		while (str_cut(rest, '\n', &line, &tail)) {
			rest = tail;
			check_line(c, line);
		}
		buf_drop_front(&text, (size_t)(rest.data - text.data));
		if (text.len > AUDIT_LINE_MAX) {
			check_line(c, (struct str){ text.data, text.len });
			buf_clear(&text);
		}
	} while (len);
	settle_odd(c);
	if (!text.len || (is_last && c->is_live)) /* it is being written */
		return 0;
	c->line++;
	if (is_last && c->last.seq >= c->out->head.last.seq)
		verify_add(c, NOTE_TORN, 0,
			arena_printf(c->arena, "%zu bytes of a last line that was torn by a crash",
				text.len));
	else if (!is_last)
		verify_add(c, FINDING_MALFORMED, 0, "the last line of the file is not whole");
	return 0;
}

/* The first line there is must be line 1, or follow what was pruned. */
static void begin_chain(struct check *c, const text_list *names)
{
	const struct audit_head *head = &c->out->head;
	uint64_t first = 0;
	if (names->count)
		audit_file_first(names->items[0], &first);
	if (c->out->head_state >= HEAD_UNCHECKED && head->pruned.seq) {
		verify_add(c, NOTE_PRUNED, 1,
			lines_text(c, 1, head->pruned.seq, "were pruned, as the signed head says"))
			->last_seq = head->pruned.seq;
		if (first > head->pruned.seq)
			c->last = head->pruned;
		c->is_linked = first > head->pruned.seq;
	} else if (first > 1) {
		c->is_first_of_file = true;
		add_gap(c, 1, first - 1);
	} else
		c->is_linked = true; /* to 64 zeros */
}

static void check_end(struct check *c)
{
	const struct audit_head *head = &c->out->head;
	enum audit_head_state state = c->out->head_state;
	c->file[0] = 0;
	c->line = 0;
	if (state == HEAD_INVALID)
		verify_add(c, FINDING_HEAD, 0, "'audit/head' is not signed by 'audit/key'");
	else if (state == HEAD_UNCHECKED)
		verify_add(c, FINDING_HEAD, 0, "'audit/key' is missing: the head can't be checked");
	else if (state == HEAD_MISSING && c->out->lines)
		verify_add(c, FINDING_HEAD, 0, "'audit/head' is missing");
	if (state >= HEAD_UNCHECKED && head->last.seq > c->last.seq)
		verify_add(c, FINDING_CUT, c->last.seq + 1,
			arena_printf(c->arena,
				"the log was cut: the signed head says %llu, the lines end at %llu",
				(unsigned long long)head->last.seq,
				(unsigned long long)c->last.seq))
			->last_seq = head->last.seq;
	else if (state >= HEAD_UNCHECKED && !c->is_live && c->last.seq > head->last.seq)
		verify_add(c, NOTE_UNSIGNED, head->last.seq + 1,
			lines_text(c, head->last.seq + 1, c->last.seq,
				"not signed: the process that writes was killed before"))
			->last_seq = c->last.seq;
	if (c->against && !c->has_seen_against)
		verify_add(c, FINDING_AGAINST, c->against->seq,
			c->against->seq <= head->pruned.seq
				? "the line whose hash was given was pruned"
				: "the line whose hash was given is missing");
}

static bool is_held(int dir)
{
	auto_close int fd = openat(dir, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
}

static int verify_once(struct check *c, struct error *err)
{
	struct audit_key key;
	char text[AUDIT_HEAD_SIZE + 1];
	bool is_new;
	text_list names;
	c->is_live = is_held(c->dir);
	audit_link_init(&c->last);
	if (audit_key_open(c->dir, false, &key, &is_new, err))
		return -1;
	/* The head first: lines that come meanwhile are behind it. */
	c->out->head_state = audit_head_load(c->dir, &key, &c->out->head, text);
	if (audit_files_list(c->dir, c->arena, &names, err))
		return -1;
	begin_chain(c, &names);
	for (size_t i = 0; i < names.count; i++)
		if (check_file(c, names.items[i], i + 1 == names.count, err))
			return -1;
	c->out->last_seq = c->last.seq;
	check_end(c);
	return 0;
}

int audit_verify(int dir, const struct audit_link *against, struct arena *arena,
	struct audit_verified *verified, struct error *err)
{
	int failed = -1;
	/* A daemon that rotates meanwhile moves things: looked at again. */
	for (int i = 0; i < TRIES_MAX; i++) {
		struct check check = {
			.dir = dir, .arena = arena, .out = verified, .against = against
		};
		*verified = (struct audit_verified){ 0 };
		failed = verify_once(&check, err);
		if (!check.is_live || (!failed && !verified->problem_count))
			break;
	}
	return failed;
}
