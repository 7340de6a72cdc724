#include "policy/inputs.h"

struct policy_input *policy_inputs_want(
	struct policy_inputs *inputs, enum policy_input_kind kind, const char *path)
{
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->items[i]->kind == kind && strcmp(inputs->items[i]->path, path) == 0)
			return inputs->items[i];
	if (inputs->count == POLICY_INPUTS_MAX || inputs->rounds >= POLICY_INPUT_ROUNDS)
		return NULL;
	struct policy_input *input = arena_alloc(inputs->arena, sizeof *input);
	*input = (struct policy_input){ .kind = kind, .path = arena_text(inputs->arena, path) };
	inputs->items[inputs->count++] = input;
	return input;
}

struct policy_input *policy_inputs_next(const struct policy_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->items[i]->state == POLICY_INPUT_WANTED)
			return inputs->items[i];
	return NULL;
}

bool policy_inputs_go_on(struct policy_inputs *inputs)
{
	return policy_inputs_next(inputs) && inputs->rounds++ < POLICY_INPUT_ROUNDS;
}

void policy_inputs_give(struct policy_inputs *inputs, struct policy_input *input, struct str text)
{
	input->state = POLICY_INPUT_UNREAD;
	if (text.len > POLICY_INPUT_MAX || inputs->bytes + text.len > POLICY_INPUTS_BYTES)
		return;
	inputs->bytes += text.len;
	input->text = text;
	input->state = POLICY_INPUT_READ;
}

void policy_inputs_fail(struct policy_input *input, enum error_code code)
{
	input->state = code == ERR_NOT_FOUND ? POLICY_INPUT_MISSING : POLICY_INPUT_UNREAD;
}
