#include "net/turns.h"

#include "base/clock.h"

static void on_turn(struct loop *loop, void *ctx);

void turns_init(struct turns *turns, struct loop *loop)
{
	*turns = (struct turns){ .loop = loop, .last = &turns->first };
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
		turns_leave(turns, turn);
		serve(turns, turn);
	}
	wait_for_turn(turns);
}

void turns_take(struct turns *turns, struct turn *turn)
{
	if (turns->first || turns->taken_ns >= TURN_NS) {
		turn->next = NULL;
		turn->at = turns->last;
		*turns->last = turn;
		turns->last = &turn->next;
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
	else
		turns->last = turn->at;
	turn->at = NULL;
}
