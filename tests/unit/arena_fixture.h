/* arena_fixture.h -- one arena for a group of tests; includes unit.h. */
#pragma once
#include "base/arena.h"
#include "unit.h"

static struct arena arena;

static int set_up(void **state)
{
	arena_init(&arena);
	return 0;
}

static int tear_down(void **state)
{
	arena_done(&arena);
	return 0;
}
