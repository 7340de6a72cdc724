/* Rules that would allow what was asked for. */
#include "base/path.h"
#include "policy/internal.h"

/* Programs whose first word says what they do. */
static const char with_verbs[] =
	"git pip pip3 uv npm pnpm yarn bun cargo go docker podman kubectl helm poetry pdm conda "
	"apt apt-get systemctl gh make terraform aws gcloud az brew dotnet mvn gradle gem bundle "
	"composer rustup deno ip virtualenv";
/* Programs that run what their arguments say: a rule for them is as good as one for any command. */
static const char runners[] =
	"sh bash dash zsh ksh fish python python3 node nodejs ruby perl php lua env xargs sudo "
	"doas su nohup timeout nice time command exec eval busybox ssh setsid stdbuf find awk "
	"gawk mawk sed npx uvx bunx pipx chroot nsenter unshare watch parallel strace";

/* The word as a rule has it; NULL: no rule can have it. */
static const char *quoted(struct arena *arena, const char *word)
{
	if (!word[0] || strpbrk(word, "\n\t\r"))
		return NULL;
	if (!strpbrk(word, " '\""))
		return word;
	if (!strchr(word, '\''))
		return arena_printf(arena, "'%s'", word);
	return strchr(word, '"') ? NULL : arena_printf(arena, "\"%s\"", word);
}

static const char *suggest_exact(struct arena *arena, const shell_words *words, size_t first)
{
	const char *text = "";
	size_t len;
	if (words->count - first > 32)
		return NULL;
	for (size_t i = first; i < words->count; i++) {
		const char *word =
			words->items[i].literal ? quoted(arena, words->items[i].literal) : NULL;
		if (!word)
			return NULL;
		text = arena_printf(arena, "%s%s%s", text, i > first ? " " : "", word);
	}
	len = strlen(text);
	if (len > 400 || (len > 1 && text[len - 1] == '*'))
		return NULL;
	return arena_printf(arena, "shell(%s)", text);
}

const char *suggest_command(struct arena *arena, const shell_words *words, size_t first)
{
	const char *name = words->items[first].literal;
	const char *verb = first + 1 < words->count ? words->items[first + 1].literal : NULL;
	if (!name || !quoted(arena, name) || strchr(name, '*'))
		return NULL;
	if (first + 1 == words->count || words_have(runners, path_basename(name)))
		return suggest_exact(arena, words, first);
	if (!words_have(with_verbs, path_basename(name)))
		return arena_printf(arena, "shell(%s:*)", quoted(arena, name));
	if (!verb || verb[0] == '-' || !quoted(arena, verb))
		return suggest_exact(arena, words, first);
	return arena_printf(arena, "shell(%s %s:*)", quoted(arena, name), quoted(arena, verb));
}

static size_t find_rule(const text_list *rules, const char *text)
{
	size_t i = 0;
	while (i < rules->count && strcmp(rules->items[i], text) != 0)
		i++;
	return i;
}

/* One rule in place of those for reading, writing and deleting a file. */
static void join_operations(struct arena *arena, text_list *rules)
{
	static const char *const others[] = { "write", "delete" };
	for (size_t i = 0; i < rules->count; i++) {
		const char *path = rules->items[i] + 10;
		size_t at[2];
		if (strncmp(rules->items[i], "file(read:", 10) != 0)
			continue;
		for (size_t k = 0; k < 2; k++)
			at[k] = find_rule(
				rules, arena_printf(arena, "file(%s:%s", others[k], path));
		if (at[0] == rules->count || at[1] == rules->count)
			continue;
		rules->items[i] = arena_printf(arena, "file(*:%s", path);
		size_t kept = 0;
		for (size_t from = 0; from < rules->count; from++)
			if (from != at[0] && from != at[1])
				rules->items[kept++] = rules->items[from];
		rules->count = kept;
	}
}

void policy_suggest(const struct policy_verdict *verdict, struct arena *arena, text_list *rules)
{
	struct map known;
	map_init(&known, arena);
	for (size_t i = 0; i < rules->count; i++)
		map_set(&known, str_from(rules->items[i]), rules);
	for (size_t i = 0; i < verdict->trail.count; i++) {
		const struct policy_step *step = &verdict->trail.items[i];
		if (step->decision == POLICY_ALLOW || !step->suggestion)
			continue;
		if (!map_set(&known, str_from(step->suggestion), rules))
			vec_push(arena, rules, step->suggestion);
	}
	join_operations(arena, rules);
}
