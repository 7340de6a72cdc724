#include "envs/logins.h"

#include "envs/internal.h"
#include "envs/node/npm_registry.h"
#include "format/http/uri.h"
#include "format/packages/netrc.h"

void login_add(struct arena *arena, text_list *texts, const char *before, const char *login,
	const char *after)
{
	bool is_alone = strlen(login) >= LOGIN_ALONE_MIN;
	if (is_alone || (*login && (*before || *after)))
		vec_push(arena, texts,
			is_alone ? login : arena_printf(arena, "%s%s%s", before, login, after));
}

/* As it stands in the URL, and as it is meant. */
static void add_url(struct arena *arena, text_list *texts, const char *url)
{
	struct uri parts;
	struct str user, password, decoded;
	if (!url || !uri_split(url, &parts) || !str_cut(parts.user, ':', &user, &password))
		return;
	const char *before = arena_printf(arena, "%.*s:", (int)user.len, user.data);
	login_add(arena, texts, before, arena_bytes(arena, password.data, password.len), "@");
	if (uri_decode(arena, password, false, &decoded) && !str_equal(decoded, password))
		login_add(arena, texts, before, decoded.data, "@");
}

static int find_python(
	const struct builder *builder, struct arena *arena, text_list *texts, struct error *err)
{
	const struct index_asked nothing = { 0 };
	struct index_set set;
	text_list known = { 0 }; /* parts of set.logins */
	netrc_logins logins = { 0 };
	struct str netrc;
	if (index_find(&nothing, &builder->store->config, arena, &set, err) < 0 ||
		index_log_in(&set, builder->network->password, builder->network->ctx, arena, &known,
			err) < 0 ||
		index_netrc(arena, &netrc, err) < 0)
		return -1;
	add_url(arena, texts, set.index);
	for (size_t i = 0; i < set.extra.count; i++)
		add_url(arena, texts, set.extra.items[i]);
	for (size_t i = 0; i < set.logins.count; i++)
		add_url(arena, texts, set.logins.items[i].full);
	netrc_list(netrc, arena, &logins);
	for (size_t i = 0; i < logins.count; i++)
		login_add(arena, texts, arena_printf(arena, "%s:", logins.items[i].login),
			logins.items[i].password, "@");
	return 0;
}

int logins_find(
	const struct builder *builder, struct arena *arena, text_list *texts, struct error *err)
{
	text_list found = { 0 };
	npm_registry_logins(arena, &found);
	if (find_python(builder, arena, &found, err) < 0)
		return error_context(err, "find the logins of this host");
	*texts = found;
	return 0;
}

int logins_search(const struct env_store *store, const char *layer, const char *package,
	const text_list *texts, struct arena *arena, env_findings *findings, struct error *err)
{
	struct manifest manifest;
	text_list paths = { 0 };
	if (layer_read(&store->layers, layer, arena, &manifest, err) < 0 ||
		layer_search(&store->layers, layer, texts, arena, &paths, err) < 0)
		return -1;
	for (size_t i = 0; i < paths.count; i++)
		finding_add(arena, findings, layer, package, paths.items[i],
			"holds a login of this host for a registry");
	/* No package has a file there: builders wrote theirs to one of that name. */
	for (size_t i = 0; i < manifest.entries.count; i++)
		if (strcmp(manifest.kind, "node-modules") == 0 &&
			strcmp(manifest.entries.items[i].path, ".npmrc") == 0)
			finding_add(arena, findings, layer, package, ".npmrc",
				"is the client's configuration, which can hold a login");
	return 0;
}
