#include "net/turns.h"

#include "base/clock.h"

static void on_turn(struct loop *loop, void *ctx);

void turns_init(struct turns *turns, struct loop *loop)
{
	*turns = (struct turns){ .loop = loop };
}

void turns_done(struct turns *turns)
{
	while (turns->first)
		turns_leave(turns, turns->first);
	loop_cancel(turns->loop, turns->timer);
	turns->timer = NULL;
}

static void serve(struct turns *turns, const struct turn *turn)
{
	uint64_t began_ns = clock_monotonic_ns();
	turn->serve(turn->ctx);
	turns->taken_ns += clock_monotonic_ns() - began_ns;
}

static void wait_for_turn(struct turns *turns)
{
	if (!turns->timer && (turns->first || turns->taken_ns >= TURN_NS))
		turns->timer = loop_after(turns->loop, 0, on_turn, turns);
}

static void on_turn(struct loop *loop, void *ctx)
{
	struct turns *turns = ctx;
	turns->timer = NULL;
	turns->taken_ns = 0;
	while (turns->first && turns->taken_ns < TURN_NS) {
		struct turn *turn = turns->first;
		turns->round = turn->round;
		turns_leave(turns, turn);
		serve(turns, turn);
	}
	wait_for_turn(turns);
}

static bool is_same_holder(const struct turn *a, const struct turn *b)
{
	return a->holder == b->holder || (a->holder && b->holder && !strcmp(a->holder, b->holder));
}

/* Behind all of its round, which is the one after its holder's last. */
static void insert(struct turns *turns, struct turn *turn)
{
	struct turn **at = &turns->first;
	turn->round = turns->round + 1;
	for (const struct turn *other = turns->first; other; other = other->next)
		if (is_same_holder(other, turn))
			turn->round = other->round + 1;
	while (*at && (*at)->round <= turn->round)
		at = &(*at)->next;
	turn->next = *at;
	turn->at = at;
	if (turn->next)
		turn->next->at = &turn->next;
	*at = turn;
}

void turns_take(struct turns *turns, struct turn *turn)
{
	if (turns->first || turns->taken_ns >= TURN_NS) {
		insert(turns, turn);
	} else {
		serve(turns, turn);
	}
	wait_for_turn(turns);
}

void turns_leave(struct turns *turns, struct turn *turn)
{
	if (!turn->at)
		return;
	*turn->at = turn->next;
	if (turn->next)
		turn->next->at = turn->at;
	turn->at = NULL;
}
